//! The report of each attempt to an observer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tonic::Code;

use crate::error::Error;
use crate::method::Method;

/// An attempt that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The service, such as `polynym.v1.DirectoryService`.
    pub service: &'static str,
    /// The method, such as `ResolveIdentity`.
    pub method: &'static str,
    /// The number of the attempt of its call, from 1, of those that reach the server.
    pub number: u32,
    /// Its time. That of a stream ends when it begins.
    pub duration: Duration,
    /// The code of gRPC.
    pub code: Code,
    /// The reason, such as `IDENTITY_TAKEN`; empty if it succeeded, or the server did not answer.
    pub reason: String,
    /// The address of the server.
    pub server: String,
}

/// The function that is called after each attempt.
pub type Observer = Arc<dyn Fn(&Attempt) + Send + Sync>;

/// Calls an observer. Its panic, of which the panic hook tells, is not that of the call.
pub fn notify(observer: &Observer, attempt: &Attempt) {
    let _ = catch_unwind(AssertUnwindSafe(|| observer(attempt)));
}

impl Attempt {
    pub(crate) fn new(
        method: &Method,
        number: u32,
        duration: Duration,
        error: Option<&Error>,
        server: String,
    ) -> Self {
        let (service, name) = method.names();
        let reason = error.map(Error::reason).unwrap_or_default().to_owned();
        let code = error.map_or(Code::Ok, Error::code);
        Self { service, method: name, number, duration, code, reason, server }
    }
}
