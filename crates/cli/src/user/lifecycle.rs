//! `polynym user disable`, `enable`, `delete`, `undelete` and `purge`.

use clap::Args;

use super::change::{Change, show};
use super::many::{self, Subject};
use crate::client::user_ref::{self, UserRef};
use crate::client::{Session, request_id};
use crate::failure::Failure;
use crate::output::{self, confirm, printable};
use polynym_presentation::action::Action;
use polynym_proto::v1::{
    DeleteUserRequest, DisableUserRequest, EnableUserRequest, PurgeUserRequest, UndeleteUserRequest,
};

pub const DISABLE: &str = "\
Examples:
  polynym user disable handle:joe --reason 'left the company'
  polynym user disable --filter 'attributes.team = \"search\"' --dry-run
  polynym user disable --file leavers.txt --reason 'left the company'

Many users change in bulk changes of the server, with the operation id as theirs. Ctrl-C stops them:
the same command with that --operation-id goes on.";
pub const ENABLE: &str = "\
Examples:
  polynym user enable handle:joe
  polynym user enable --filter 'attributes.team = \"search\" AND state = DISABLED' --dry-run";
pub const DELETE: &str = "\
Examples:
  polynym user delete handle:joe
  polynym user delete --filter 'attributes.source = \"trial\"' --dry-run
  polynym user delete --file leavers.txt --reason 'left the company'";
pub const UNDELETE: &str = "\
Examples:
  polynym user undelete handle:joe
  polynym user undelete 20be0ffc-314a-bd53-7a50-013a65ca76d2
  polynym user undelete --filter 'state = DELETED attributes.team = \"search\"' --dry-run

With --file, give the ids of deleted users: only a single USER is found by an identifier.";
pub const PURGE: &str =
    "Example:\n  polynym user purge --dry-run 20be0ffc-314a-bd53-7a50-013a65ca76d2";

#[derive(Args)]
pub struct Lifecycle {
    #[command(flatten)]
    subject: Subject,
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

pub async fn disable(command: Lifecycle) -> Result<(), Failure> {
    change(command, Action::Disable).await
}

pub async fn enable(command: Lifecycle) -> Result<(), Failure> {
    change(command, Action::Enable).await
}

pub async fn delete(command: Lifecycle) -> Result<(), Failure> {
    change(command, Action::Delete).await
}

pub async fn undelete(command: Lifecycle) -> Result<(), Failure> {
    change(command, Action::Undelete).await
}

async fn change(command: Lifecycle, action: Action) -> Result<(), Failure> {
    let Lifecycle { subject, change } = command;
    let Some(user) = subject.one() else {
        return many::run(subject, change.of_many()?, action.bulk()).await;
    };
    let session = Session::open(&change.settings).await?;
    let user_id = match action {
        Action::Undelete => user.id_of_any(&session).await?,
        _ => user.id(&session).await?,
    };
    call(&session, action, user_id, change).await
}

/// Calls the method of an action, whose messages all have the same fields.
async fn call(
    session: &Session,
    action: Action,
    user_id: String,
    change: Change,
) -> Result<(), Failure> {
    let request_id = change.request_id();
    let (tenant, etag, registry) = (session.tenant(), change.etag, session.registry());
    let outcome = match action {
        Action::Disable => {
            let request = DisableUserRequest { tenant, user_id, etag, request_id };
            registry.disable_user(request).await.map(|answer| answer.user)
        }
        Action::Enable => {
            let request = EnableUserRequest { tenant, user_id, etag, request_id };
            registry.enable_user(request).await.map(|answer| answer.user)
        }
        Action::Delete => {
            let request = DeleteUserRequest { tenant, user_id, etag, request_id };
            registry.delete_user(request).await.map(|answer| answer.user)
        }
        Action::Undelete => {
            let request = UndeleteUserRequest { tenant, user_id, etag, request_id };
            registry.undelete_user(request).await.map(|answer| answer.user)
        }
    };
    show(session, session.answer(outcome)?)
}

pub async fn purge(Purge { user, dry_run, yes, change }: Purge) -> Result<(), Failure> {
    let session = Session::open(&change.settings).await?;
    let request_id = change.request_id();
    let user_id = user.id(&session).await?;
    let (tenant, etag) = (session.tenant(), change.etag);
    let request = PurgeUserRequest { tenant, user_id, etag, request_id, validate_only: dry_run };
    if !dry_run && !yes {
        confirm(&session, &request).await?;
    }

    let outcome = session.admin().purge_user(request).await;
    let answer = session.answer(outcome)?;
    if session.json() {
        return output::print_message(&answer);
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
    let answer = session.answer(session.admin().purge_user(trial).await)?;
    for id in &answer.user_ids {
        eprintln!("{} would be gone", printable(id));
    }
    let question = "This cannot be undone. Purge? Type yes: ";

    confirm::require_answer(question, "yes", "nothing was purged")
}
