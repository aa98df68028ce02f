//! The limits of a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One call in this many is logged, if calls are sampled.
const SAMPLE_INTERVAL: u64 = 100;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The timeout of a call, unless the caller's `grpc-timeout` is shorter. A connection whose
    /// client does not read an answer in half as much time again is closed.
    pub call_timeout: Duration,
    /// The maximum number of look-ups in flight, and of mutations; more are refused with
    /// OVERLOADED. A call counts once its message has arrived. Health does not count.
    pub max_calls: usize,
    /// The maximum number of connections; more wait to be accepted.
    pub max_connections: usize,
    /// The age at which a connection is asked to finish and reconnect, so that callers spread over
    /// new servers.
    pub connection_age: Duration,
    /// The time without calls after which a connection is closed.
    pub connection_idle: Duration,
    /// The time for calls to finish once the server stops.
    pub drain: Duration,
    /// The calls that are logged.
    pub log_calls: LogCalls,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(10),
            max_calls: 1_024,
            max_connections: 10_000,
            connection_age: Duration::from_secs(60 * 60),
            connection_idle: Duration::from_secs(5 * 60),
            drain: Duration::from_secs(10),
            log_calls: LogCalls::None,
        }
    }
}

/// The calls that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogCalls {
    /// None.
    #[default]
    None,
    /// One in a hundred.
    Sampled,
    /// All.
    All,
}

impl LogCalls {
    /// Whether to log the present call.
    pub fn should_log(self) -> bool {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        match self {
            Self::None => false,
            Self::Sampled => COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE_INTERVAL),
            Self::All => true,
        }
    }
}
