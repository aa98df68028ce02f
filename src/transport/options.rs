//! The bounds of a server.

use std::time::Duration;

use super::call_count::LogCalls;

/// The bounds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest that a call may take; a shorter `grpc-timeout` of the caller counts. A
    /// connection whose client has not taken an answer long after that is closed.
    pub call_timeout: Duration,
    /// Look-ups worked on at once, and as many mutations; more are refused at once with OVERLOADED.
    /// A call counts once its message is there, and health does not count.
    pub max_calls: usize,
    /// Connections at once; more wait to be accepted.
    pub max_connections: usize,
    /// The age at which a connection is asked to finish and reconnect, so that callers spread over
    /// new servers.
    pub connection_age: Duration,
    /// The time without calls after which a connection is asked to reconnect when needed.
    pub connection_idle: Duration,
    /// The time that calls have to finish once the server is asked to stop.
    pub drain: Duration,
    /// Whether the calls of one connection are spread over all threads, as is best where the store
    /// works on the caller's thread. Else they stay on one, as is best where it waits for servers.
    pub task_per_call: bool,
    /// The calls that have a line in the log.
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
            task_per_call: true,
            log_calls: LogCalls::None,
        }
    }
}
