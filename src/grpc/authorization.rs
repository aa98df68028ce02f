//! The caller of a call, and the tenants that it may work in.

use std::sync::Arc;

use tonic::{Code, Request, Status};

use super::status::status;
use polynym_access::Call;
use polynym_directory::Tenant;
use polynym_transport::rich_status::{internal, plain};

/// The call of an authorized request, and its message.
pub fn authorized<M>(mut request: Request<M>) -> Result<(Arc<Call>, M), Status> {
    let call = request.extensions_mut().remove::<Arc<Call>>().ok_or_else(internal)?;
    Ok((call, request.into_inner()))
}

/// The tenant of a request, if the caller may work in it, whether the tenant exists or not.
pub fn permitted_tenant(call: &Call, name: &str) -> Result<Tenant, Status> {
    let tenant = Tenant::parse(name).map_err(status)?;
    if !call.tenants.contains(tenant.as_str()) {
        let message = "this credential is not for this tenant: its `tenants` in the server's \
            credentials file do not include it";
        return Err(plain(Code::PermissionDenied, "TENANT_DENIED", message));
    }
    call.set_tenant(tenant.as_str());
    Ok(tenant)
}
