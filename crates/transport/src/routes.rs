//! The interface between the transport and its services.

use std::sync::Arc;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;

use super::request_body::RequestBody;
use polynym_access::{Call, Caller};

/// The services of a server.
pub trait Routes: Send + Sync + 'static {
    /// The target of a call.
    type Target: Target;

    /// Whether callers need credentials.
    fn needs_credentials(&self) -> bool;

    /// The caller with a client certificate of these names, without a token.
    fn certified_caller(&self, names: &[String]) -> Option<Arc<Caller>>;

    /// Authorizes a call by its headers and the `names` of its client's certificate, and adds the
    /// [`Call`] to the request's extensions. A call of health has none.
    ///
    /// # Errors
    /// The call is refused.
    fn authorize<B>(
        &self,
        request: &mut Request<B>,
        names: &[String],
    ) -> Result<Option<Arc<Call>>, Refusal>;

    /// Executes a call.
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
    /// The status of the refusal.
    pub status: Status,
}

/// The method that a call targets.
pub trait Target: Copy + Send + Sync {
    /// The target of a path such as `/polynym.v1.DirectoryService/GetUser`.
    fn from_path(path: &str) -> Self;

    /// The number of the method, below 64.
    fn index(self) -> usize;

    /// The name of the method in metrics.
    fn name(self) -> &'static str;

    /// The maximum number of open streams of the method, if its calls are long-lived streams.
    fn max_streams(self) -> Option<usize>;

    /// Whether a stream of the method comes to an end by itself, as an export does and a watch does
    /// not.
    fn is_finite(self) -> bool;

    /// Whether a call may compute for long, so that it takes turns with others.
    fn is_scan(self) -> bool;

    /// The size of the largest request message, in bytes.
    fn max_message_bytes(self) -> usize;

    /// The kind of permit that the call takes. Health takes none, as it must answer under any load.
    fn permit_kind(self) -> Option<PermitKind>;
}

/// The kinds of permits. While a disk hangs, mutations use up theirs, and reads continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitKind {
    /// For calls that only read.
    Read,
    /// For calls that may write.
    Mutation,
}
