//! `polynym user disable`, `enable`, `delete`, `undelete` and `purge`.

use clap::Args;

use super::{Change, show};
use crate::cli::client::{Session, request_id};
use crate::cli::failure::Failure;
use crate::cli::output::printable;
use crate::cli::who::Who;
use crate::cli::{confirm, output, who};
use crate::proto::v1::{
    DeleteUserRequest, DisableUserRequest, EnableUserRequest, PurgeUserRequest, UndeleteUserRequest,
};

pub const DISABLE: &str = "Example:\n  polynym user disable handle:joe";
pub const ENABLE: &str = "Example:\n  polynym user enable handle:joe";
pub const DELETE: &str = "Example:\n  polynym user delete handle:joe";
pub const UNDELETE: &str = "Example:\n  polynym user undelete 20be0ffc-314a-bd53-7a50-013a65ca76d2";
pub const PURGE: &str =
    "Example:\n  polynym user purge --dry-run 20be0ffc-314a-bd53-7a50-013a65ca76d2";

#[derive(Args)]
pub struct Life {
    /// The user: an id, or an identifier that it owns.
    #[arg(value_name = "USER", value_parser = who::parse)]
    user: Who,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Undelete {
    /// The user's id: identifiers of deleted users resolve to no user.
    user_id: String,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Purge {
    /// The user: an id, or an identifier that it owns.
    #[arg(value_name = "USER", value_parser = who::parse)]
    user: Who,
    /// Tell who would be gone, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    change: Change,
}

pub async fn disable(Life { user, change }: Life) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let user_id = user.id(&session).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = DisableUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.disable_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn enable(Life { user, change }: Life) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let user_id = user.id(&session).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = EnableUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.enable_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn delete(Life { user, change }: Life) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let user_id = user.id(&session).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = DeleteUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.delete_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn undelete(Undelete { user_id, change }: Undelete) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = UndeleteUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.undelete_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn purge(Purge { user, dry_run, yes, change }: Purge) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = request_id(change.request_id.as_deref());
    let user_id = user.id(&session).await?;
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = PurgeUserRequest {
        tenant,
        user_id,
        etag,
        request_id: request_id.clone(),
        validate_only: dry_run,
    };
    if !dry_run && !yes {
        confirm(&session, &request).await?;
    }

    let send = |request| {
        let mut admin = session.admin();
        async move { admin.purge_user(request).await }
    };
    let answer = session.mutate(&request_id, request, send).await?;
    if session.json() {
        return output::print_message("PurgeUserResponse", &answer);
    }
    let word = if dry_run { "would be gone" } else { "is gone" };

    answer.user_ids.iter().try_for_each(|id| output::print(&format!("{} {word}\n", printable(id))))
}

/// Asks for confirmation, with the users that would be removed. Needs a terminal.
async fn confirm(session: &Session, request: &PurgeUserRequest) -> Result<(), Failure> {
    confirm::require_terminal(
        "a purge cannot be undone: see with --dry-run who would be gone, and give --yes",
    )?;

    let request_id = request_id(None);
    let trial = PurgeUserRequest { validate_only: true, request_id, ..request.clone() };
    let answer = session.answer(session.admin().purge_user(session.request(trial)).await)?;
    for id in &answer.user_ids {
        eprintln!("{} would be gone", printable(id));
    }
    let question = "This cannot be undone. Purge? Type yes: ";

    confirm::require_answer(question, "yes", "nothing was purged")
}
