//! The metrics of deliveries.

/// The counter of attempts, by result.
pub const ATTEMPTS: (&str, &str) =
    ("polynym_delivery_attempts_total", "Attempts to send an event to a receiver, by result");
/// The counter of events that were given up.
pub const DEAD_LETTERS: (&str, &str) =
    ("polynym_delivery_dead_letters_total", "Events that a receiver has not taken for a day");
/// The counter of deliveries that this server has paused.
pub const PAUSES: (&str, &str) =
    ("polynym_delivery_pauses_total", "Deliveries that the server has paused");
/// The gauge of deliveries that this server has.
pub const RUNNING: (&str, &str) =
    ("polynym_deliveries_running", "Deliveries that this server sends the events of");
