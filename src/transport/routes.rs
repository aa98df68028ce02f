//! The seam between the transport and the services that it carries.

use std::sync::Arc;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;

use super::request_body::RequestBody;
use crate::access::{Call, Caller};

/// The services of a server, as the transport sees them.
pub trait Routes: Send + Sync + 'static {
    /// The target of a call.
    type Target: Target;

    /// Whether callers need credentials.
    fn needs_credentials(&self) -> bool;

    /// The caller of a client's certificate with these names, without a token.
    fn certified(&self, names: &[String]) -> Option<Arc<Caller>>;

    /// Checks by its headers whether a call may be made, on a connection whose client's certificate
    /// has these `names`, and leaves its caller with the request. A call of health has none.
    ///
    /// # Errors
    /// The status of the refusal, and the caller if it is known.
    fn authorize<B>(
        &self,
        request: &mut Request<B>,
        names: &[String],
    ) -> Result<Option<Arc<Call>>, Refusal>;

    /// Carries out a call.
    fn call(
        &self,
        target: Self::Target,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// The refusal of a call by its headers.
pub struct Refusal {
    /// The call, if its caller is known.
    pub call: Option<Arc<Call>>,
    /// The answer.
    pub status: Status,
}

/// The treatment of a call.
pub trait Target: Copy + Send + Sync {
    /// The target of a path such as `/polynym.v1.DirectoryService/GetUser`.
    fn of(path: &str) -> Self;

    /// The number of the method, less than 64.
    fn index(self) -> usize;

    /// The name of the method, as metrics have it.
    fn name(self) -> &'static str;

    /// Whether the call is a stream, which stays open until its caller leaves.
    fn is_stream(self) -> bool;

    /// The size of the largest request message, in bytes.
    fn message_bytes(self) -> usize;

    /// The permits of which the call takes one; health takes none, since it must answer under any
    /// load.
    fn permits(self) -> Option<Permits>;
}

/// The two pools of permits. While a disk hangs, mutations use up theirs, and reads go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permits {
    /// For calls that only read.
    Reads,
    /// For calls that may change something.
    Mutations,
}
