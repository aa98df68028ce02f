//! Records that cannot be read: what reads many of them leaves them out, and says so.

use std::error::Error;
use std::time::Duration;

use locality_uuid::LocalityId;
use metrics::counter;

use polynym_directory::LogPause;

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

/// The counter of reads of deliveries that fail.
pub const UNREADABLE_DELIVERIES: (&str, &str) = (
    "polynym_delivery_unreadable_total",
    "Deliveries that cannot be read, counted each time that a list skips one",
);

/// The counter of other records that cannot be read.
pub const UNREADABLE_RECORDS: (&str, &str) = (
    "polynym_unreadable_records_total",
    "Users, claims and tenants that cannot be read, counted each time that one is passed",
);

/// The pauses between two lines of the log.
static BULK_LOG: LogPause = LogPause::new(Duration::from_secs(60));
static DELIVERY_LOG: LogPause = LogPause::new(Duration::from_secs(60));
static RECORD_LOG: LogPause = LogPause::new(Duration::from_secs(1));
static HISTORY_LOG: LogPause = LogPause::new(Duration::from_secs(1));

/// A kind of records.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A user.
    User(LocalityId),
    /// A claim of an identifier, which the log does not show.
    Claim,
    /// A tenant.
    Tenant,
}

/// The record that was read; if it cannot be read, counts it, and logs at most one a second.
pub fn readable<T, E: Error + 'static>(kind: Kind, read: Result<T, E>) -> Option<T> {
    let error = match read {
        Ok(record) => return Some(record),
        Err(error) => error,
    };
    let (record, user) = match kind {
        Kind::User(id) => ("user", Some(tracing::field::display(id))),
        Kind::Claim => ("claim", None),
        Kind::Tenant => ("tenant", None),
    };
    counter!(UNREADABLE_RECORDS.0).increment(1);
    if RECORD_LOG.is_over() {
        let error = &error as &(dyn Error + 'static);
        tracing::error!(record, user, error, "a record cannot be read: run `polynym store verify`");
    }
    None
}

/// Logs a part of a history that cannot be read, at most one a second.
pub fn report_damaged_history(error: &(dyn Error + 'static)) {
    if HISTORY_LOG.is_over() {
        tracing::error!(error, "a history has a damaged record: run `polynym store verify`");
    }
}

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
    if BULK_LOG.is_over() {
        tracing::error!(tenant, bulk, error, "a bulk change cannot be read: it is skipped");
    }
}

/// Counts a delivery that cannot be read, and logs it at most once a minute. Lists have the others.
pub fn report_unreadable_delivery(tenant: &str, delivery: &str, error: &(dyn Error + 'static)) {
    counter!(UNREADABLE_DELIVERIES.0).increment(1);
    if DELIVERY_LOG.is_over() {
        tracing::error!(tenant, delivery, error, "a delivery cannot be read: it is skipped");
    }
}
