//! The count and the time of a store's operations. A store measures each operation where it begins
//! it, so that no call of a store's trait is missed or counted twice.

use std::sync::OnceLock;
use std::time::Instant;

use metrics::{Counter, Histogram, counter, histogram};

use crate::spans;
use polynym_directory::{Error, ItemError, ItemResult};

/// The counter of operations: its name, and what it counts.
pub const OPERATIONS: (&str, &str) = (
    "polynym_store_operations_total",
    "Operations of the store, by kind and outcome: ok, refused, unavailable or unknown",
);
/// The histogram of their time.
pub const SECONDS: (&str, &str) =
    ("polynym_store_operation_seconds", "Time of the store's operations, by kind");

/// A kind of operation of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A look-up of users by identities.
    Resolve,
    /// A look-up of users by ids.
    Get,
    /// A read of claims.
    Claims,
    /// A read of tenants.
    Tenant,
    /// A read or a removal of a part of the users, holds or events.
    Scan,
    /// A search, or a read of what searches need.
    Search,
    /// A read of the users whose time to be purged has come.
    ExpiredUsers,
    /// A mutation.
    Mutate,
    /// A check of the store's health.
    Check,
    /// A read or a write of inboxes.
    Inbox,
    /// A read or a write of counters of calls.
    Usage,
    /// A read or a removal of bulk changes.
    Bulk,
    /// A read or a removal of deliveries.
    Delivery,
    /// A read of the event feed, without the time in which it waits for events.
    Feed,
    /// A copy of the store's file.
    Copy,
}

impl Operation {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 15] = [
        Self::Resolve,
        Self::Get,
        Self::Claims,
        Self::Tenant,
        Self::Scan,
        Self::Search,
        Self::ExpiredUsers,
        Self::Mutate,
        Self::Check,
        Self::Inbox,
        Self::Usage,
        Self::Bulk,
        Self::Delivery,
        Self::Feed,
        Self::Copy,
    ];

    /// The value of the label `operation`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Get => "get",
            Self::Claims => "claims",
            Self::Tenant => "tenant",
            Self::Scan => "scan",
            Self::Search => "search",
            Self::ExpiredUsers => "expired_users",
            Self::Mutate => "mutate",
            Self::Check => "check",
            Self::Inbox => "inbox",
            Self::Usage => "usage",
            Self::Bulk => "bulk",
            Self::Delivery => "delivery",
            Self::Feed => "feed",
            Self::Copy => "copy",
        }
    }

    /// Begins an operation, which counts once it ends.
    pub fn begin(self) -> Begun {
        Begun { operation: self, at: Instant::now() }
    }
}

/// An operation that has begun. One whose caller leaves is not counted.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    operation: Operation,
    at: Instant,
}

impl Begun {
    /// Awaits something that is no work of the store: its time does not count.
    pub async fn pause<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let done = wait.await;
        self.at += since.elapsed();
        done
    }

    /// Counts the operation with its outcome.
    pub fn end<T>(self, outcome: &Result<T, Error>) {
        self.record(match outcome {
            Ok(_) => OK,
            Err(Error::OutcomeUnknown(_)) => UNKNOWN,
            Err(Error::Unavailable(_) | Error::Internal(_) | Error::Overloaded) => UNAVAILABLE,
            Err(_) => REFUSED,
        });
    }

    fn record(self, outcome: usize) {
        let (meters, name) = (&METERS[self.operation as usize], self.operation.name());
        let (took, is_error) = (self.at.elapsed(), outcome >= UNAVAILABLE);
        let seconds = || histogram!(SECONDS.0, "operation" => name);
        meters.seconds.get_or_init(seconds).record(took.as_secs_f64());
        spans::add(name, took, OUTCOMES[outcome], is_error);
        let count = || counter!(OPERATIONS.0, "operation" => name, "outcome" => OUTCOMES[outcome]);
        meters.outcomes[outcome].get_or_init(count).increment(1);
    }
}

/// Measures an operation.
///
/// # Errors
/// The operation's.
pub async fn measure<T>(
    operation: Operation,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let begun = operation.begin();
    let outcome = work.await;
    begun.end(&outcome);
    outcome
}

/// Measures a look-up of several items: it is unavailable if one of them is.
///
/// # Errors
/// The look-up's.
pub async fn measure_items<T, F>(
    operation: Operation,
    look_up: impl Future<Output = Result<T, Error>>,
    items: impl FnOnce(&T) -> &[ItemResult<F>],
) -> Result<T, Error> {
    let begun = operation.begin();
    let outcome = look_up.await;
    let is_away = |item: &ItemResult<F>| matches!(item, Err(ItemError::Unavailable(_)));
    match &outcome {
        Ok(found) if items(found).iter().any(is_away) => begun.record(UNAVAILABLE),
        _ => begun.end(&outcome),
    }
    outcome
}

/// The metrics of one kind of operation. They are found once: a look-up by labels for each
/// operation would take longer than to count it.
struct Meters {
    seconds: OnceLock<Histogram>,
    outcomes: [OnceLock<Counter>; OUTCOMES.len()],
}

static METERS: [Meters; Operation::ALL.len()] = [const {
    Meters { seconds: OnceLock::new(), outcomes: [const { OnceLock::new() }; OUTCOMES.len()] }
}; Operation::ALL.len()];

const OUTCOMES: [&str; 4] = ["ok", "refused", "unavailable", "unknown"];
const OK: usize = 0;
const REFUSED: usize = 1;
const UNAVAILABLE: usize = 2;
const UNKNOWN: usize = 3;
