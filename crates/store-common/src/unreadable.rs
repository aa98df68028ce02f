//! Events and bulk changes that cannot be read: watches and lists leave them out, and say so.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;
use metrics::counter;

/// The counter of changes and events that cannot be read.
pub const UNREADABLE: (&str, &str) = (
    "polynym_watch_unreadable_total",
    "Changes and events of users that cannot be read, so that watches do not have them",
);

/// The counter of reads of bulk changes that fail.
pub const UNREADABLE_BULK: (&str, &str) = (
    "polynym_bulk_unreadable_total",
    "Bulk changes that cannot be read, counted each time that a list or a server skips one",
);

/// The pause between two lines of the log about bulk changes: servers read them every second.
const BULK_LOG_PAUSE: Duration = Duration::from_secs(60);

/// Counts and logs a change or an event that cannot be read. The others still reach the watchers.
pub fn report_unreadable(user: Option<LocalityId>, error: &(dyn Error + 'static)) {
    counter!(UNREADABLE.0).increment(1);
    let user = user.map(tracing::field::display);
    tracing::error!(user, error, "a change of a user cannot be read: watches do not have it");
}

/// Counts a bulk change that cannot be read, and logs it at most once a minute. Lists have the
/// others, and servers run them.
pub fn report_unreadable_bulk(tenant: &str, bulk: &str, error: &(dyn Error + 'static)) {
    counter!(UNREADABLE_BULK.0).increment(1);
    if is_log_due() {
        tracing::error!(tenant, bulk, error, "a bulk change cannot be read: it is skipped");
    }
}

fn is_log_due() -> bool {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = last.is_none_or(|last| last.elapsed() >= BULK_LOG_PAUSE);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}
