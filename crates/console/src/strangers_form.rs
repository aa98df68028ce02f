//! Forms of those who are not signed in. A form is read as a whole before its request counts as
//! one in flight: slow ones keep nobody from signing in.

use std::sync::Arc;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use polynym_transport::EvictionQueue;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::form::FORM_TIMEOUT;

/// The maximum number of forms that are read at once: a new one ends the oldest.
const MAX_FORMS: usize = 256;

/// The reason why a form was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It has more bytes than it may.
    TooLarge,
    /// It did not arrive in time.
    Late,
    /// Newer ones took its place.
    Replaced,
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::TooLarge => Self::Form("The form is too large.".to_owned()),
            Unread::Late => Self::Form("The form did not arrive in time.".to_owned()),
            Unread::Replaced => Self::Busy,
        }
    }
}

/// The forms that are read.
pub struct StrangersForms(Arc<EvictionQueue>);

impl Default for StrangersForms {
    fn default() -> Self {
        Self(EvictionQueue::new(MAX_FORMS))
    }
}

impl StrangersForms {
    /// Reads the body of a request, of at most this number of bytes.
    ///
    /// # Errors
    /// It is too large, does not arrive in time, or is the oldest of too many.
    pub async fn read(&self, request: Request, max_bytes: usize) -> Result<Request, Unread> {
        let (parts, body) = request.into_parts();
        if body.size_hint().lower() > max_bytes as u64 {
            return Err(Unread::TooLarge);
        }
        let entry = self.0.add();
        let bytes = tokio::select! {
            bytes = timeout(FORM_TIMEOUT, to_bytes(body, max_bytes)) => bytes,
            () = entry.evicted() => return Err(Unread::Replaced),
        };
        let bytes = bytes.map_err(|_| Unread::Late)?.map_err(|_| Unread::TooLarge)?;
        Ok(Request::from_parts(parts, Body::from(bytes)))
    }
}
