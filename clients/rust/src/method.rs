//! The methods of the API, and their requests.

use prost::Message;

/// A method of the API.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The HTTP path.
    pub path: &'static str,
    /// Whether it changes nothing.
    pub only_reads: bool,
    /// Whether its requests have an idempotency key.
    pub has_request_id: bool,
}

impl Method {
    /// The names of the service and of the method.
    pub(crate) fn names(&self) -> (&'static str, &'static str) {
        self.path.trim_start_matches('/').split_once('/').unwrap_or_default()
    }
}

/// The fields of a request that the client sets if they are empty.
pub trait ApiRequest: Message + 'static {
    /// The tenant.
    fn tenant(&mut self) -> Option<&mut String> {
        None
    }

    /// The idempotency key.
    fn request_id(&mut self) -> Option<&mut String> {
        None
    }
}
