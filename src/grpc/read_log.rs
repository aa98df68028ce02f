//! The log of reads, for audits: whose records a call has shown, to which caller, and why. It has
//! no identifiers and no other content of records.

use std::collections::BTreeSet;

use locality_uuid::LocalityId;
use tracing::Level;

use super::purpose;
use crate::READ_LOG;
use polynym_access::Call;
use polynym_directory::{EncodedUser, Event};

/// The maximum ids in a line.
const MAX_IDS: usize = 1_000;

/// Writes the line of a call that has shown the records of these users, if reads are logged. A call
/// that has shown nobody has none.
pub fn log_read(call: &Call, users: impl IntoIterator<Item = LocalityId>) {
    if !is_on() {
        return;
    }
    let users: BTreeSet<_> = users.into_iter().collect();
    if users.is_empty() {
        return;
    }
    let ids: Vec<_> = users.iter().take(MAX_IDS).map(ToString::to_string).collect();
    write(call, &ids.join(","), Some(users.len()));
}

/// Writes the line of a call that has shown the users that it names by these ids.
pub fn log_read_of(call: &Call, ids: [&str; 2]) {
    log_read(call, ids.iter().filter_map(|id| id.parse().ok()));
}

/// Writes the line of a call that begins to show the records of a whole tenant, or of all.
pub fn log_read_of_all(call: &Call) {
    if is_on() {
        write(call, "all", None);
    }
}

/// The ids of encoded users. One that cannot be read has none to show.
pub fn ids<'u>(
    users: impl IntoIterator<Item = &'u EncodedUser>,
) -> impl Iterator<Item = LocalityId> {
    users.into_iter().filter_map(|user| user.id().ok())
}

/// The users of events.
pub fn users_of(events: &[Event]) -> impl Iterator<Item = LocalityId> {
    events.iter().map(|event| event.user)
}

fn is_on() -> bool {
    tracing::enabled!(target: READ_LOG, Level::INFO)
}

fn write(call: &Call, users: &str, count: Option<usize>) {
    let purpose = purpose::of(call.purpose());
    let operation = Some(purpose.operation_id).filter(|id| !id.is_empty());
    let reason = Some(purpose.logged_reason()).filter(|reason| !reason.is_empty());
    tracing::info!(
        target: READ_LOG,
        caller = call.name,
        tenant = call.tenant(),
        method = call.method(),
        users,
        count,
        operation,
        reason,
        "read"
    );
}
