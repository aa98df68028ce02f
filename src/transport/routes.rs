//! The seam between the transport and the services that it carries.

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;

use super::request_body::RequestBody;

/// The services of a server, as the transport sees them.
pub trait Routes: Send + Sync + 'static {
    /// The target of a call: a method, or a group of methods that are treated alike.
    type Target: Target;

    /// Checks by its headers whether a call may be made.
    ///
    /// # Errors
    /// The status of the refusal.
    fn authorize<B>(&self, request: &mut Request<B>) -> Result<(), Status>;

    /// Carries out a call.
    fn call(
        &self,
        target: Self::Target,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// The treatment of a call.
pub trait Target: Copy + Send + Sync {
    /// The target of a path such as `/polynym.v1.DirectoryService/GetUser`.
    fn of(path: &str) -> Self;

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
