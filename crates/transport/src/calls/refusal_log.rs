//! The log of calls that are denied or refused: for each code at most one line a second.

use std::net::SocketAddr;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::log_throttle::LogThrottle;

/// The number of codes.
const CODES: usize = 17;
/// The throttles of the lines, by code.
static THROTTLES: [LogThrottle; CODES] = [const { LogThrottle::new() }; CODES];

/// The parts of a log line that do not depend on the status and the caller.
#[derive(Clone, Copy)]
pub struct RefusalLog {
    pub method: &'static str,
    pub is_mutation: bool,
    pub address: Option<SocketAddr>,
}

impl RefusalLog {
    /// Writes a line if the status denies or refuses the call. It has the reason and not the
    /// message, which may repeat a part of the request.
    pub fn write(&self, status: &Status, caller: &str) {
        if !is_logged(status.code(), self.is_mutation) {
            return;
        }
        let throttle = THROTTLES.get(status.code() as usize);
        let Some(suppressed) = throttle.and_then(LogThrottle::step) else { return };
        let info = status.get_details_error_info();
        let reason = info.as_ref().map_or("", |info| &info.reason);
        let address = self.address.map(tracing::field::display);
        tracing::info!(caller, method = self.method, reason, address, suppressed, "call refused");
    }
}

/// Whether calls with this code are logged: those that the server denies, and mutations that their
/// request or the data rule out. A look-up that finds nobody is an answer.
const fn is_logged(code: Code, is_mutation: bool) -> bool {
    match code {
        Code::PermissionDenied | Code::Unauthenticated | Code::ResourceExhausted => true,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted => is_mutation,
        _ => false,
    }
}
