//! Events that cannot be read: watches leave them out, and say so.

use std::error::Error;

use locality_uuid::LocalityId;
use metrics::counter;

/// The counter of changes and events that cannot be read.
pub const UNREADABLE: (&str, &str) = (
    "polynym_watch_unreadable_total",
    "Changes and events of users that cannot be read, so that watches do not have them",
);

/// Counts and logs a change or an event that cannot be read. The others still reach the watchers.
pub fn report_unreadable(user: Option<LocalityId>, error: &(dyn Error + 'static)) {
    counter!(UNREADABLE.0).increment(1);
    let user = user.map(tracing::field::display);
    tracing::error!(user, error, "a change of a user cannot be read: watches do not have it");
}
