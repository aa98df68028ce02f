//! The text of bulk changes.

use std::io::IsTerminal;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client::Session;
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::attribute;
use polynym_presentation::action::{bulk_name, undone};
use polynym_presentation::blocker::{Blockers, Line};
use polynym_presentation::state;
use polynym_proto::v1::bulk_action::Action;
use polynym_proto::v1::bulk_change::Counts;
use polynym_proto::v1::{BulkChange, BulkChangeState, GetBulkChangeRequest};

/// The interval at which progress is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The failures that are shown.
const MAX_SHOWN: usize = 10;

/// The bulk change with this id.
pub async fn find(session: &Session, id: &str) -> Result<BulkChange, Failure> {
    let request = GetBulkChangeRequest { tenant: session.tenant(), bulk_id: id.to_owned() };
    let answer = session.answer(session.registry().get_bulk_change(request).await)?;
    Ok(answer.bulk_change.unwrap_or_default())
}

/// Listens to Ctrl-C from now on.
pub fn interrupts() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failure::Other(format!("cannot listen to Ctrl-C: {error}")))
}

/// Shows the progress of a bulk change until it ends, or until Ctrl-C. Returns whether Ctrl-C came
/// first.
pub async fn wait(
    session: &Session,
    started: BulkChange,
    interrupt: &mut Signal,
) -> Result<(BulkChange, bool), Failure> {
    let (mut change, is_terminal) = (started, std::io::stderr().is_terminal());
    let mut is_interrupted = false;
    while change.state() == BulkChangeState::Running && !is_interrupted {
        if is_terminal {
            eprint!("\r{} ", counts(&change));
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = interrupt.recv() => is_interrupted = true,
        }
        change = find(session, &change.bulk_id).await?;
    }
    if is_terminal {
        eprintln!();
    }
    Ok((change, is_interrupted))
}

/// Shows the progress of a bulk change until it ends, and then the bulk change. Fails if it did not
/// complete, or if users failed. After Ctrl-C it goes on.
pub async fn follow(session: &Session, started: BulkChange) -> Result<(), Failure> {
    let (change, is_interrupted) = wait(session, started, &mut interrupts()?).await?;
    show(session, &change)?;
    if is_interrupted {
        let id = printable(&change.bulk_id);
        eprintln!("it goes on: `polynym bulk stop {id}` stops it");
        return Err(Failure::Interrupted);
    }
    let has_failed = change.counts.as_ref().is_some_and(|counts| !counts.failed.is_empty());
    match change.state() {
        BulkChangeState::Completed if !has_failed => Ok(()),
        _ => Err(Failure::AlreadyReported),
    }
}

/// Shows a bulk change.
pub fn show(session: &Session, change: &BulkChange) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(change);
    }
    let dry_run = if change.validate_only { " (dry run)" } else { "" };
    let mut lines = vec![
        format!("bulk change {}{dry_run}", printable(&change.bulk_id)),
        format!("  change: {}", action(change)),
        match (change.listed_users, operation(change)) {
            (_, Some(_)) => format!("  found: {}", filter(change)),
            (0, None) => format!("  filter: {}", filter(change)),
            _ => format!("  list: {}", filter(change)),
        },
        format!("  state: {}{}", state::bulk_word(change.state()), reason(change)),
        format!("  users: {}", counts(change)),
    ];
    let by = printable(&change.caller);
    let start_reason = match &*change.reason {
        "" => String::new(),
        reason => format!(": {}", printable(reason)),
    };
    let started = change.create_time.map(|time| format!("  started: {time} by {by}{start_reason}"));
    lines.extend(started);
    lines.extend(change.end_time.map(|time| format!("  ended: {time}")));
    for failure in change.failures.iter().take(MAX_SHOWN) {
        lines.push(format!("  failed: {} {}", failure.user_id, printable(&failure.reason)));
    }
    if change.failures.len() > MAX_SHOWN {
        lines.push(format!("  and {} others: see --failures", change.failures.len() - MAX_SHOWN));
    }
    lines.extend(
        Blockers::of_bulk(&change.blockers).iter().map(|line| format!("  {}", blocked(line))),
    );
    output::print(&(lines.join("\n") + "\n"))
}

/// The sentence about an operation that has to be undone first.
pub fn blocked(Line { operation_id, caller, what, users, .. }: &Line) -> String {
    let (operation_id, caller) = (printable(operation_id), printable(caller));
    let count = if *users == 1 { "1 user".to_owned() } else { format!("{users} users") };
    match operation_id.is_empty() {
        true => format!("changed since by {caller}, in no operation: {count}"),
        false => format!("first undo the {what} {operation_id} by {caller}: {count}"),
    }
}

/// The operation that a bulk change undoes.
fn operation(change: &BulkChange) -> Option<&str> {
    undone(change.action.as_ref()?.action.as_ref()?)
}

/// The row of a table.
pub fn row(change: &BulkChange) -> [String; 6] {
    let checked = change.counts.as_ref().map_or(0, |counts| counts.checked);
    let dry_run = if change.validate_only { " (dry run)" } else { "" };
    [
        printable(&change.bulk_id).into_owned(),
        format!("{}{dry_run}", action(change)),
        filter(change),
        format!("{}{}", state::bulk_word(change.state()), reason(change)),
        checked.to_string(),
        printable(&change.caller).into_owned(),
    ]
}

/// The filter, or the number of listed users.
fn filter(change: &BulkChange) -> String {
    match (&*change.filter, change.listed_users) {
        ("", 0) if operation(change).is_some() => "no users yet".to_owned(),
        ("", 0) => "all users".to_owned(),
        ("", users) => format!("{users} users"),
        (filter, _) => printable(filter).into_owned(),
    }
}

fn action(change: &BulkChange) -> String {
    match change.action.as_ref().and_then(|action| action.action.as_ref()) {
        None => String::new(),
        Some(Action::Attributes(attributes)) => {
            let set = attributes
                .set
                .iter()
                .map(|(name, value)| format!("{}={}", printable(name), attribute::text(value)));
            let removed = attributes.remove.iter().map(|name| format!("-{}", printable(name)));
            format!("set {}", set.chain(removed).collect::<Vec<_>>().join(" "))
        }
        Some(Action::Undo(undo)) => format!("undo {}", printable(&undo.operation_id)),
        Some(other) => bulk_name(other).unwrap_or_default().to_owned(),
    }
}

/// Why it ended, or for which error it waits.
pub fn reason(change: &BulkChange) -> String {
    match (change.state(), printable(&change.end_reason)) {
        (BulkChangeState::Running, _) if !change.wait_reason.is_empty() => {
            format!(", waiting: {}", printable(&change.wait_reason))
        }
        (_, reason) if reason.is_empty() => String::new(),
        (BulkChangeState::Stopped, reason) if state::stop_cause(&reason).is_empty() => {
            format!(" by {reason}")
        }
        (_, reason) => format!(": {reason}"),
    }
}

fn counts(change: &BulkChange) -> String {
    let Counts { checked, changed, unchanged, skipped, failed } =
        change.counts.clone().unwrap_or_default();
    let verb = if change.validate_only { "would change" } else { "changed" };
    let reasons: Vec<_> =
        failed.iter().map(|one| format!("{} {}", one.users, printable(&one.reason))).collect();
    let failed_users: i64 = failed.iter().map(|one| one.users).sum();
    let failed = match failed_users {
        0 => String::new(),
        count => format!(", {count} failed ({})", reasons.join(", ")),
    };
    format!("{checked} checked, {changed} {verb}, {unchanged} unchanged, {skipped} skipped{failed}")
}
