//! The circumstances of a call.

use crate::clock::Now;
use crate::model::tenant::Tenant;

/// The circumstances of a call. It goes with every call from the API to the rules.
#[derive(Clone, Debug)]
pub struct RequestContext<'a> {
    /// The tenant.
    pub tenant: Tenant,
    /// The caller.
    pub caller: &'a str,
    /// The name of the method.
    pub method: &'static str,
    /// A UUID that names the request, or nothing.
    pub request_id: &'a str,
    /// The time of the call.
    pub now: Now,
}

/// A call that changes something.
#[derive(Clone, Debug)]
pub struct MutationCall<'a> {
    /// Its circumstances.
    pub context: RequestContext<'a>,
    /// The etag that the user or the tenant must have, or nothing.
    pub etag: &'a str,
    /// Whether nothing is written, and the answer shows what would happen.
    pub dry_run: bool,
}

impl<'a> From<RequestContext<'a>> for MutationCall<'a> {
    /// The call without a precondition.
    fn from(context: RequestContext<'a>) -> Self {
        Self { context, etag: "", dry_run: false }
    }
}
