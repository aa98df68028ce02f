//! The state that the request and the response of a call with lines share: rejected lines, and the
//! error that ended the request early.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tonic::Status;

/// The bytes of rejects that wait for the response. The request is read on once it has sent them.
const MAX_WAITING_BYTES: usize = 64 << 10;

/// The state of a call.
#[derive(Default)]
pub struct Exchange(Mutex<State>);

#[derive(Default)]
struct State {
    /// The lines of rejects that are not sent yet.
    rejects: Vec<u8>,
    rejected: i64,
    failure: Option<Status>,
    request: Option<Waker>,
    response: Option<Waker>,
}

impl Exchange {
    /// Adds the line of a reject.
    pub fn reject(&self, text: &[u8]) {
        let mut state = self.state();
        state.rejects.extend_from_slice(text);
        state.rejected += 1;
        if let Some(response) = state.response.take() {
            response.wake();
        }
    }

    /// Waits for room for rejects.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.rejects.len() < MAX_WAITING_BYTES {
            return Poll::Ready(());
        }
        state.request = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits for rejects.
    pub fn poll_rejects(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if !state.rejects.is_empty() {
            return Poll::Ready(());
        }
        state.response = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes the rejects.
    pub fn take_rejects(&self) -> Bytes {
        let mut state = self.state();
        if let Some(request) = state.request.take() {
            request.wake();
        }
        mem::take(&mut state.rejects).into()
    }

    /// The number of rejects.
    pub fn rejected(&self) -> i64 {
        self.state().rejected
    }

    /// Records why the request ended early.
    pub fn fail(&self, status: Status) {
        self.state().failure = Some(status);
    }

    /// The reason why the request ended early, if it did.
    pub fn failure(&self) -> Option<Status> {
        self.state().failure.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
