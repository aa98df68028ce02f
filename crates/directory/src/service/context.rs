//! The circumstances of a call.

use crate::clock::Now;
use crate::model::tenant::Tenant;
use crate::service::purpose::Purpose;

/// The circumstances of a call, passed along from the API to the rules.
#[derive(Clone, Debug)]
pub struct RequestContext<'a> {
    /// The tenant.
    pub tenant: Tenant,
    /// The caller.
    pub caller: &'a str,
    /// The name of the method.
    pub method: &'static str,
    /// The UUID of the request; may be empty.
    pub request_id: &'a str,
    /// The reason why the caller makes the call.
    pub purpose: Purpose<'a>,
    /// The time of the call.
    pub now: Now,
}

/// A mutating call.
#[derive(Clone, Debug)]
pub struct MutationCall<'a> {
    /// Its circumstances.
    pub context: RequestContext<'a>,
    /// The etag that the user or the tenant must have; empty for any.
    pub etag: &'a str,
    /// Whether to answer with the result without writing it.
    pub dry_run: bool,
}

impl<'a> From<RequestContext<'a>> for MutationCall<'a> {
    /// The call without a precondition.
    fn from(context: RequestContext<'a>) -> Self {
        Self { context, etag: "", dry_run: false }
    }
}
