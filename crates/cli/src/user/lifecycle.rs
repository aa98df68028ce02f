//! `polynym user disable`, `enable`, `delete`, `undelete` and `purge`.

use clap::Args;

use super::change::{Change, show};
use crate::client::user_ref::{self, UserRef};
use crate::client::{Session, request_id};
use crate::failure::Failure;
use crate::output::{self, confirm, printable};
use polynym_proto::v1::{
    DeleteUserRequest, DisableUserRequest, EnableUserRequest, PurgeUserRequest, UndeleteUserRequest,
};

pub const DISABLE: &str = "Example:\n  polynym user disable handle:joe";
pub const ENABLE: &str = "Example:\n  polynym user enable handle:joe";
pub const DELETE: &str = "Example:\n  polynym user delete handle:joe";
pub const UNDELETE: &str = "Example:\n  polynym user undelete 20be0ffc-314a-bd53-7a50-013a65ca76d2";
pub const PURGE: &str =
    "Example:\n  polynym user purge --dry-run 20be0ffc-314a-bd53-7a50-013a65ca76d2";

#[derive(Args)]
pub struct Lifecycle {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Undelete {
    /// The user's id: identifiers of deleted users do not resolve.
    user_id: String,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Purge {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// Show the users that would be removed, without removing them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    change: Change,
}

pub async fn disable(Lifecycle { user, change }: Lifecycle) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let user_id = user.id(&session).await?;
    let request_id = change.request_id();
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = DisableUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = async |request| session.registry().disable_user(request).await;
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn enable(Lifecycle { user, change }: Lifecycle) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let user_id = user.id(&session).await?;
    let request_id = change.request_id();
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = EnableUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = async |request| session.registry().enable_user(request).await;
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn delete(Lifecycle { user, change }: Lifecycle) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let user_id = user.id(&session).await?;
    let request_id = change.request_id();
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = DeleteUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = async |request| session.registry().delete_user(request).await;
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn undelete(Undelete { user_id, change }: Undelete) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = change.request_id();
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = UndeleteUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = async |request| session.registry().undelete_user(request).await;
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn purge(Purge { user, dry_run, yes, change }: Purge) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = change.request_id();
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

    let send = async |request| session.admin().purge_user(request).await;
    let answer = session.mutate(&request_id, request, send).await?;
    if session.json() {
        return output::print_message("PurgeUserResponse", &answer);
    }
    let word = if dry_run { "would be gone" } else { "is gone" };
    answer.user_ids.iter().try_for_each(|id| output::print(&format!("{} {word}\n", printable(id))))
}

/// Shows the users that would be removed, and asks for confirmation. Needs a terminal.
async fn confirm(session: &Session, request: &PurgeUserRequest) -> Result<(), Failure> {
    confirm::require_terminal(
        "a purge cannot be undone: see its result with --dry-run, and confirm with --yes",
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
