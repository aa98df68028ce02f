//! The right to make a call: the credential and the role are checked by the headers, before the
//! body is read; the tenant once the message is decoded, before anything is looked up.

use std::sync::Arc;

use tonic::{Code, Request, Status};

use super::methods::{Needs, Target};
use super::status::status;
use crate::access::{Access, Call, Role};
use crate::directory::model::tenant::Tenant;
use crate::transport::rich_status::{internal, plain};
use crate::transport::routes::{Refusal, Target as _};

/// Checks the credential and the role, and leaves the caller with the request. `names` are those of
/// the client's certificate.
pub fn authorize<B>(
    access: &Access,
    request: &mut http::Request<B>,
    names: &[String],
) -> Result<Option<Arc<Call>>, Refusal> {
    let needs = Target::of(request.uri().path()).method().needs;
    if needs == Needs::Nothing {
        return Ok(None);
    }
    let caller = access.caller(request.headers(), names);
    let caller = caller.ok_or_else(|| Refusal { call: None, status: unauthenticated() })?;
    let call = Arc::new(Call::new(caller));
    if let Needs::Role(least) = needs
        && call.role < least
    {
        return Err(Refusal { call: Some(call), status: role_too_low("this method", least) });
    }

    request.extensions_mut().insert(call.clone());
    Ok(Some(call))
}

/// The caller of a request, with the call that it makes, and the message.
pub fn with_caller<M>(mut request: Request<M>) -> Result<(Arc<Call>, M), Status> {
    let call = request.extensions_mut().remove::<Arc<Call>>().ok_or_else(internal)?;
    Ok((call, request.into_inner()))
}

/// The tenant of a request, if the caller may work in it. The answer does not depend on whether
/// the tenant exists.
pub fn permitted_tenant(call: &Call, name: &str) -> Result<Tenant, Status> {
    let tenant = Tenant::parse(name).map_err(status)?;
    if !call.tenants.contains(tenant.as_str()) {
        let message = "this credential is not for this tenant: its `tenants` in the server's \
            credentials file name others";
        return Err(plain(Code::PermissionDenied, "TENANT_DENIED", message));
    }
    call.set_tenant(tenant.as_str());
    Ok(tenant)
}

fn unauthenticated() -> Status {
    let message = "no valid credential: send `authorization: Bearer TOKEN` with a token that is \
        in the server's credentials file and has not expired, or use a client certificate that is";
    plain(Code::Unauthenticated, "CREDENTIAL_INVALID", message)
}

/// The refusal of a call, or of a part of it, that needs a higher role.
pub fn role_too_low(what: &str, least: Role) -> Status {
    let message = format!("{what} needs the role {least}: the credential has a lesser one");
    plain(Code::PermissionDenied, "ROLE_DENIED", &message)
}
