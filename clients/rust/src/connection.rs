//! The connections to servers, and the headers of each call.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use tonic::metadata::{KeyAndValueRef, MetadataMap};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{self, Channel};
use tonic::{Request, Status};

pub mod address;
pub mod dial;
pub mod pool;
pub mod token;

use crate::error::Error;
use token::Token;

/// A connection whose calls carry the caller's token and headers. It has no other rule of the
/// client: neither deadlines nor retries.
pub type Connection = InterceptedService<Channel, Headers>;

/// Changes the metadata of each attempt of a call, such as for tracing.
pub type OnCall = Arc<dyn Fn(&mut MetadataMap) + Send + Sync>;

/// The headers of every call.
#[derive(Clone)]
pub struct Headers {
    pub(crate) token: Token,
    pub(crate) metadata: MetadataMap,
    pub(crate) on_call: Option<OnCall>,
}

impl Interceptor for Headers {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        if let Some(token) = self.token.current() {
            metadata.insert("authorization", token);
        }
        for entry in self.metadata.iter() {
            if let KeyAndValueRef::Ascii(name, value) = entry {
                metadata.insert(name, value.clone());
            }
        }
        if let Some(on_call) = &self.on_call {
            on_call(metadata);
        }
        Ok(request)
    }
}

/// Why a client cannot connect.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting is wrong, or names a file that cannot be read.
    Setting(String),
    /// No server can be reached. The error has the kind `Unavailable`.
    Unreachable(Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(message) => f.write_str(message),
            Self::Unreachable(error) => {
                let causes = std::iter::successors(error.source(), |&cause| cause.source());
                match causes.last() {
                    Some(cause) => write!(f, "{}: {cause}", error.message()),
                    None => f.write_str(error.message()),
                }
            }
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Setting(_) => None,
            Self::Unreachable(error) => Some(error),
        }
    }
}

impl From<transport::Error> for ConnectError {
    fn from(error: transport::Error) -> Self {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let cause = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
        Self::Setting(cause)
    }
}
