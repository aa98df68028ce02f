//! Authorization of calls: the credential and the role before the body is read, the tenant before
//! anything is looked up.

use std::sync::Arc;

use tonic::{Code, Request, Status};

use super::methods::{Requirement, Target};
use super::purpose;
use super::status::status;
use polynym_access::{Access, Call, CallPurpose, Role};
use polynym_directory::model::tenant::Tenant;
use polynym_transport::rich_status::{internal, plain};
use polynym_transport::routes::{Refusal, Target as _};

/// Checks the credential and the role, and adds the call to the request's extensions. `names` are
/// those of the client's certificate.
pub fn authorize<B>(
    access: &Access,
    request: &mut http::Request<B>,
    names: &[String],
) -> Result<Option<Arc<Call>>, Refusal> {
    let target = Target::from_path(request.uri().path());
    let requirement = target.method().requirement;
    if requirement == Requirement::None {
        return Ok(None);
    }
    let caller = access
        .caller(request.headers(), names)
        .ok_or_else(|| Refusal { call: None, status: unauthenticated() })?;
    let (purpose, rejection) = match purpose::read(request.headers()) {
        Ok(purpose) => (purpose, None),
        Err(status) => (CallPurpose::default(), Some(status)),
    };
    let call = Arc::new(Call::new(caller, target.name(), purpose));
    if let Requirement::Role(required) = requirement
        && call.role < required
    {
        return Err(Refusal { call: Some(call), status: role_too_low("this method", required) });
    }

    if let Some(status) = rejection {
        return Err(Refusal { call: Some(call), status });
    }

    request.extensions_mut().insert(call.clone());
    Ok(Some(call))
}

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

fn unauthenticated() -> Status {
    let message = "no valid credential: send `authorization: Bearer TOKEN` with an unexpired token \
        from the server's credentials file, or use a client certificate listed there";
    plain(Code::Unauthenticated, "CREDENTIAL_INVALID", message)
}

/// The status for a call, or a field of it, that requires a higher role.
pub fn role_too_low(what: &str, required: Role) -> Status {
    let message = format!("{what} needs the role {required}: the credential has a lower one");
    plain(Code::PermissionDenied, "ROLE_DENIED", &message)
}
