//! Requests in flight: each session, each caller and the strangers have a share of them, and so of
//! the memory of forms.

use std::sync::Arc;

use polynym_access::{ActiveCount, Caller, Permit};

use crate::failure::Failure;
use crate::session::Session;

/// The maximum number of requests in flight of all who are signed in.
const MAX_REQUESTS: usize = 256;
/// The maximum number of requests in flight of a session.
const MAX_SESSION_REQUESTS: usize = 16;
/// The maximum number of requests in flight of those who are not signed in.
const MAX_STRANGERS_REQUESTS: usize = 64;

/// The maximum number of answers to wrong tokens that wait.
const MAX_WRONG_TOKENS: usize = 64;

/// The requests in flight.
#[derive(Default)]
pub struct Requests {
    signed_in: Arc<ActiveCount>,
    strangers: Arc<ActiveCount>,
    wrong_tokens: Arc<ActiveCount>,
}

/// The permit of a request in flight.
pub enum RequestPermit {
    /// Of a session.
    Session(#[expect(dead_code, reason = "it counts until it is dropped")] Permit<3>),
    /// Of somebody who is not signed in.
    Stranger(#[expect(dead_code, reason = "it counts until it is dropped")] Permit<1>),
}

impl Requests {
    /// Admits a request of a session.
    ///
    /// # Errors
    /// The session, its caller or all together have their share in flight.
    pub fn of_session(&self, session: &Session, caller: &Caller) -> Result<RequestPermit, Failure> {
        let permit = Permit::take([
            (&session.requests, MAX_SESSION_REQUESTS),
            (&caller.state.pages, caller.share(MAX_REQUESTS)),
            (&self.signed_in, MAX_REQUESTS),
        ]);
        permit.map(RequestPermit::Session).map_err(|_| Failure::Busy)
    }

    /// Admits a request of somebody who is not signed in.
    ///
    /// # Errors
    /// Strangers have their share in flight.
    pub fn of_stranger(&self) -> Result<RequestPermit, Failure> {
        let permit = Permit::take([(&self.strangers, MAX_STRANGERS_REQUESTS)]);
        permit.map(RequestPermit::Stranger).map_err(|_| Failure::Busy)
    }

    /// Admits an answer to a wrong token, which waits. It is no longer a request in flight: those
    /// who try many tokens keep nobody with a right one from signing in.
    ///
    /// # Errors
    /// Too many such answers wait.
    pub fn of_wrong_token(&self) -> Result<Permit<1>, Failure> {
        let permit = Permit::take([(&self.wrong_tokens, MAX_WRONG_TOKENS)]);
        permit.map_err(|_| Failure::Busy)
    }
}
