//! Whether the server is ready for calls: one state, which one task keeps up to date and every
//! probe reads.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use metrics::gauge;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::telemetry::Metric;
use polynym_directory::{Directory, Error};

/// The gauge of the state.
pub const READY: Metric = ("polynym_ready", "1 while the server is ready for calls, else 0");

/// The pause between two checks of the store.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The time after which a store without an answer is unavailable. A check of a cluster of which a
/// part is away takes up to two seconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

/// The states of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The store is not open yet.
    Opening,
    /// The store answers.
    Ready,
    /// The store does not answer.
    StoreUnavailable,
    /// The server is about to stop. No other state follows.
    Stopping,
}

impl State {
    /// The reason why the server is not ready, if so.
    pub fn obstacle(self) -> Option<&'static str> {
        match self {
            Self::Opening => Some("the store is not open yet"),
            Self::Ready => None,
            Self::StoreUnavailable => Some("the store does not answer"),
            Self::Stopping => Some("stopping: calls under way may finish"),
        }
    }

    fn checked(outcome: Result<(), Error>) -> Self {
        match outcome {
            Ok(()) => Self::Ready,
            Err(_) => Self::StoreUnavailable,
        }
    }
}

/// The state of a server. Reading it waits for nothing.
pub struct Readiness(watch::Sender<State>);

impl Default for Readiness {
    fn default() -> Self {
        gauge!(READY.0).set(0);
        Self(watch::Sender::new(State::Opening))
    }
}

impl Readiness {
    /// The state.
    pub fn state(&self) -> State {
        *self.0.borrow()
    }

    /// The changes of the state from here on.
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.0.subscribe()
    }

    /// Checks the store for the first time, so that a server whose store answers in
    /// time is ready from its first call on. Later calls have no effect.
    pub async fn opened(&self, directory: &Directory) {
        if self.state() == State::Opening {
            let checked = timeout(CHECK_TIMEOUT, directory.check()).await;
            self.set(checked.map_or(State::StoreUnavailable, State::checked));
        }
    }

    /// Checks the store in a loop, one check at a time.
    pub async fn watch_store(&self, directory: &Directory) -> Infallible {
        loop {
            let mut check = pin!(directory.check());
            match timeout(CHECK_TIMEOUT, &mut check).await {
                Ok(outcome) => self.set(State::checked(outcome)),
                Err(_) => {
                    self.set(State::StoreUnavailable);
                    // An answer that is late does not make the server ready: the next one may.
                    let _ = check.await;
                }
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Records that the server is about to stop.
    pub fn stopping(&self) {
        self.set(State::Stopping);
    }

    fn set(&self, next: State) {
        self.0.send_if_modified(|state| {
            if *state == next || *state == State::Stopping {
                return false;
            }
            *state = next;
            gauge!(READY.0).set(u8::from(next == State::Ready));
            tracing::info!(state = ?next, "readiness");
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Readiness, State};

    #[test]
    fn a_server_that_stops_is_never_ready_again() {
        let readiness = Readiness::default();
        let mut states = readiness.subscribe();
        for (next, state) in [
            (State::Ready, State::Ready),
            (State::StoreUnavailable, State::StoreUnavailable),
            (State::Ready, State::Ready),
            (State::Stopping, State::Stopping),
            (State::Ready, State::Stopping),
        ] {
            readiness.set(next);
            assert_eq!(readiness.state(), state);
        }
        assert_eq!(*states.borrow_and_update(), State::Stopping);
        readiness.set(State::StoreUnavailable);
        assert!(!states.has_changed().unwrap());
    }

    #[test]
    fn only_a_ready_server_has_no_obstacle() {
        let all = [State::Opening, State::Ready, State::StoreUnavailable, State::Stopping];
        let ready: Vec<_> = all.into_iter().filter(|state| state.obstacle().is_none()).collect();
        assert_eq!(ready, [State::Ready]);
    }
}
