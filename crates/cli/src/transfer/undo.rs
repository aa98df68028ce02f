//! `polynym undo`.

use std::io::IsTerminal;

use clap::Args;
use tonic::Request;

use crate::bulk::show::{blocked, interrupts, reason, wait};
use crate::client::Session;
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_presentation::blocker::{Blockers, Line};
use polynym_presentation::state;
use polynym_proto::v1;
use v1::undo_operation_response::Kept;
use v1::{BulkAction, BulkChange, BulkChangeState, StartBulkChangeRequest, UndoOperationRequest};

pub const EXAMPLES: &str = "\
Examples:
  polynym undo import-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --dry-run
  polynym undo import-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d
  polynym undo leavers-7 --user 20be0ffc-314a-bd53-7a50-013a65ca76d2

Imports and bulk changes print their id, and `polynym user history` shows it. Users that the
operation changed become what they were before, and users that it created are deleted: `polynym user
undelete` restores them. A user that somebody changed since stays as it is: first undo what the
output names.

The server undoes an operation as a bulk change, whose id the command prints. It goes on after
Ctrl-C: `polynym bulk stop` stops it, `resume` resumes it, and `get --follow` shows it again. With
--dry-run or --user the command does it, and Ctrl-C ends it.

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

/// The numbers of users, and those that stay as they are.
#[derive(Default)]
struct Report {
    users: i64,
    reverted: i64,
    kept_count: i64,
    kept: Vec<Kept>,
    blockers: Vec<Line>,
    /// The bulk change that did it.
    bulk_id: Option<String>,
}

pub async fn run(command: Undo) -> Result<(), Failure> {
    let session = Session::open_operation(&command.settings, "undo").await?;
    let report = match command.dry_run || !command.users.is_empty() {
        true => undo(&session, &command).await?,
        false => run_bulk(&session, &command).await?,
    };
    print(&session, &command, &report)?;
    if report.kept_count > 0 { Err(Failure::AlreadyReported) } else { Ok(()) }
}

/// Has the server undo the operation, and waits for the end. After Ctrl-C the server goes on.
async fn run_bulk(session: &Session, command: &Undo) -> Result<Report, Failure> {
    let undo = v1::bulk_action::Undo { operation_id: command.operation.clone() };
    let request = StartBulkChangeRequest {
        tenant: session.tenant(),
        bulk_id: session.operation_id().to_owned(),
        action: Some(BulkAction { action: Some(v1::bulk_action::Action::Undo(undo)) }),
        ..Default::default()
    };
    let answer = session.answer(session.registry().start_bulk_change(request).await)?;
    let started = answer.bulk_change.unwrap_or_default();
    let (id, operation) = (printable(&started.bulk_id).into_owned(), printable(&command.operation));
    eprintln!("bulk change {id} undoes {operation}");
    let (change, is_interrupted) = wait(session, started, &mut interrupts()?).await?;
    if is_interrupted && change.state() == BulkChangeState::Running {
        eprintln!("it goes on: `polynym bulk stop {id}` stops it");
        eprintln!("`polynym bulk get {id} --follow` shows it again");
        return Err(Failure::Interrupted);
    }
    if change.state() != BulkChangeState::Completed {
        let state = state::bulk_word(change.state());
        let why = format!("{state}{}", reason(&change));
        let advice = format!("`polynym bulk resume {id} --follow` resumes it");
        return Err(Failure::Other(format!("bulk change {id} is {why}: {advice}")));
    }
    Ok(report(change))
}

/// The report of a bulk change that undoes an operation.
fn report(change: BulkChange) -> Report {
    let counts = change.counts.unwrap_or_default();
    let kept = change.failures.into_iter().take(MAX_SHOWN);
    let kept = kept.map(|v1::bulk_change::Failure { user_id, reason }| Kept {
        user_id,
        reason,
        ..Default::default()
    });
    Report {
        users: counts.checked,
        reverted: counts.changed,
        kept_count: counts.failed.iter().map(|failed| failed.users).sum(),
        kept: kept.collect(),
        blockers: Blockers::of_bulk(&change.blockers),
        bulk_id: Some(change.bulk_id),
    }
}

/// Undoes the operation by a call that lasts as long as the command.
async fn undo(session: &Session, command: &Undo) -> Result<Report, Failure> {
    // Without a deadline: the time depends on the number of users.
    let request = Request::new(UndoOperationRequest {
        tenant: session.tenant(),
        operation_id: command.operation.clone(),
        validate_only: command.dry_run,
        user_ids: command.users.clone(),
    });
    let mut answers = session.answer(session.admin().undo_operation(request).await)?;
    let (mut report, is_terminal) = (Report::default(), std::io::stderr().is_terminal());
    let mut blockers = Blockers::default();
    while let Some(answer) = answers.message().await.map_err(|error| session.failure(error))? {
        (report.users, report.reverted) = (answer.users, answer.reverted);
        report.kept_count += answer.kept.len() as i64;
        answer.kept.iter().for_each(|kept| blockers.add(kept));
        let room = MAX_SHOWN.saturating_sub(report.kept.len());
        report.kept.extend(answer.kept.into_iter().take(room));
        if is_terminal {
            eprint!("\r{} users read, {} as before ", report.users, report.reverted);
        }
    }
    if is_terminal {
        eprintln!();
    }
    Ok(Report { blockers: blockers.lines(), ..report })
}

fn print(session: &Session, command: &Undo, report: &Report) -> Result<(), Failure> {
    let Report { users, reverted, kept_count, kept, blockers, .. } = report;
    if session.json() {
        return print_json(command, report);
    }
    let verb = if command.dry_run { "would be" } else { "are" };
    let mut text = format!("{reverted} of {users} users {verb} as before");
    if *kept_count > 0 {
        text += &format!(", {kept_count} stay as they are:");
    }
    if reverted + kept_count == 0 {
        text += ": nothing is left of such an operation; `polynym user history` shows ids";
    }
    for Kept { user_id, reason, message, .. } in kept {
        text += &format!("\n  {user_id} {}", printable(reason));
        if !message.is_empty() {
            text += &format!(": {}", printable(message));
        }
    }
    let more = *kept_count as usize - kept.len();
    if more > 0 {
        text += &format!("\n  and {more} others");
    }
    for line in blockers {
        text += &format!("\n  {}", blocked(line));
    }
    output::print(&format!("{text}\n"))
}

fn print_json(command: &Undo, report: &Report) -> Result<(), Failure> {
    let shown = report
        .kept
        .iter()
        .map(|kept| serde_json::json!({ "user_id": kept.user_id, "reason": kept.reason }));
    let blockers = report.blockers.iter().map(|line| {
        let Line { operation_id, caller, users, .. } = line;
        serde_json::json!({ "operation_id": operation_id, "caller": caller, "users": users })
    });
    let mut answer = serde_json::json!({
        "operation_id": command.operation, "dry_run": command.dry_run, "users": report.users,
        "reverted": report.reverted, "kept": report.kept_count,
        "first_kept": shown.collect::<Vec<_>>(), "blockers": blockers.collect::<Vec<_>>(),
    });
    if let Some(id) = &report.bulk_id {
        answer["bulk_id"] = id.as_str().into();
    }
    output::print_json(&answer)
}
