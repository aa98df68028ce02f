//! `polynym user disable`, `enable`, `delete`, `undelete` and `purge`.

use clap::Args;

use super::{Change, show};
use crate::cli::Failure;
use crate::cli::client::{Session, request_id};
use crate::cli::output::{self, printable};
use crate::proto::v1::{
    DeleteUserRequest, DisableUserRequest, EnableUserRequest, PurgeUserRequest, UndeleteUserRequest,
};

pub const DISABLE: &str = "Example:\n  polynym user disable 20be0ffc-314a-bd53-7a50-013a65ca76d2";
pub const ENABLE: &str = "Example:\n  polynym user enable 20be0ffc-314a-bd53-7a50-013a65ca76d2";
pub const DELETE: &str = "Example:\n  polynym user delete 20be0ffc-314a-bd53-7a50-013a65ca76d2";
pub const UNDELETE: &str = "Example:\n  polynym user undelete 20be0ffc-314a-bd53-7a50-013a65ca76d2";
pub const PURGE: &str = "Example:\n  polynym user purge --dry-run 20be0ffc-314a-bd53-7a50-013a65ca76d2";

#[derive(Args)]
pub struct Life {
    /// The user's id.
    user_id: String,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Purge {
    /// The user's id.
    user_id: String,
    /// Tell who would be gone, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

pub async fn disable(Life { user_id, change }: Life) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = DisableUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.disable_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn enable(Life { user_id, change }: Life) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = EnableUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.enable_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn delete(Life { user_id, change }: Life) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = DeleteUserRequest { tenant, user_id, etag, request_id: request_id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.delete_user(request).await }
    };
    show(&session, session.mutate(&request_id, request, send).await?.user)
}

pub async fn undelete(Life { user_id, change }: Life) -> Result<(), Failure> {
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

pub async fn purge(Purge { user_id, dry_run, change }: Purge) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = request_id(change.request_id.as_deref());
    let (tenant, etag, validate_only) = (session.tenant(), change.etag, dry_run);
    let request = PurgeUserRequest { tenant, user_id, etag, request_id: request_id.clone(), validate_only };
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
