//! `polynym undo`.

use std::io::IsTerminal;

use clap::Args;
use tonic::Request;

use crate::client::Session;
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_presentation::blocker::{Blockers, Line};
use polynym_proto::v1::UndoOperationRequest;
use polynym_proto::v1::undo_operation_response::Kept;

pub const EXAMPLES: &str = "\
Examples:
  polynym undo import-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --dry-run
  polynym undo import-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d
  polynym undo leavers-7 --user 20be0ffc-314a-bd53-7a50-013a65ca76d2

Imports and bulk changes print their id, and `polynym user history` shows it. Users that the
operation changed become what they were before, and users that it created are deleted: `polynym user
undelete` restores them. A user that somebody changed since stays as it is: first undo what the
output names. The same command again goes on after an interruption.

Exit status: 0 nothing of the operation is left; 1 some users stay as they are.";

/// The users that are shown.
const MAX_SHOWN: usize = 20;

/// `polynym undo`.
#[derive(Args)]
pub struct Undo {
    /// The id of the operation.
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Undo it for this user alone, by its id; can be repeated.
    #[arg(long = "user", value_name = "USER_ID")]
    users: Vec<String>,
    /// Show what would happen without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// The server, and the output.
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Undo) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    // Without a deadline: the time depends on the number of users.
    let request = Request::new(UndoOperationRequest {
        tenant: session.tenant(),
        operation_id: command.operation.clone(),
        validate_only: command.dry_run,
        user_ids: command.users.clone(),
    });
    let mut answers = session.answer(session.admin().undo_operation(request).await)?;
    let (mut users, mut reverted, mut kept) = (0, 0, Vec::new());
    let (mut kept_count, is_terminal) = (0, std::io::stderr().is_terminal());
    let mut blockers = Blockers::default();
    while let Some(answer) = answers.message().await.map_err(|error| session.failure(error))? {
        (users, reverted) = (answer.users, answer.reverted);
        kept_count += answer.kept.len();
        answer.kept.iter().for_each(|kept| blockers.add(kept));
        kept.extend(answer.kept.into_iter().take(MAX_SHOWN.saturating_sub(kept.len())));
        if is_terminal {
            eprint!("\r{users} users read, {reverted} as before ");
        }
    }
    if is_terminal {
        eprintln!();
    }
    let blockers = blockers.lines();
    print(&session, &command, [users, reverted, kept_count as i64], &kept, &blockers)?;
    if kept_count > 0 { Err(Failure::AlreadyReported) } else { Ok(()) }
}

fn print(
    session: &Session,
    command: &Undo,
    [users, reverted, kept_count]: [i64; 3],
    kept: &[Kept],
    blockers: &[Line],
) -> Result<(), Failure> {
    if session.json() {
        let shown = kept
            .iter()
            .map(|kept| serde_json::json!({ "user_id": kept.user_id, "reason": kept.reason }));
        let blockers = blockers.iter().map(|line| {
            let Line { operation_id, caller, users, .. } = line;
            serde_json::json!({ "operation_id": operation_id, "caller": caller, "users": users })
        });
        return output::print_json(&serde_json::json!({
            "operation_id": command.operation, "dry_run": command.dry_run, "users": users,
            "reverted": reverted, "kept": kept_count, "first_kept": shown.collect::<Vec<_>>(),
            "blockers": blockers.collect::<Vec<_>>(),
        }));
    }
    let verb = if command.dry_run { "would be" } else { "are" };
    let mut text = format!("{reverted} of {users} users {verb} as before");
    if kept_count > 0 {
        text += &format!(", {kept_count} stay as they are:");
    }
    if reverted + kept_count == 0 {
        text += ": nothing is left of such an operation; `polynym user history` shows ids";
    }
    for Kept { user_id, reason, message, .. } in kept {
        text += &format!("\n  {user_id} {reason}: {}", printable(message));
    }
    if kept_count as usize > kept.len() {
        text += &format!("\n  and {} others", kept_count as usize - kept.len());
    }
    for line in blockers {
        text += &format!("\n  {}", blocked(line));
    }
    output::print(&format!("{text}\n"))
}

/// The sentence about an operation that has to be undone first.
fn blocked(Line { operation_id, caller, what, users, .. }: &Line) -> String {
    let (operation_id, caller) = (printable(operation_id), printable(caller));
    let count = if *users == 1 { "1 user".to_owned() } else { format!("{users} users") };
    match operation_id.is_empty() {
        true => format!("changed since by {caller}, in no operation: {count}"),
        false => format!("first undo the {what} {operation_id} by {caller}: {count}"),
    }
}
