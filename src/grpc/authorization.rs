//! The right to make a call: the credential and the role are checked by the headers, before the
//! body is read; the tenant once the message is decoded, before anything is looked up.

use std::sync::Arc;

use tonic::{Code, Request, Status};

use super::methods::{Needs, Target};
use super::status::status;
use crate::access::{Access, Caller, Role};
use crate::directory::model::tenant::Tenant;
use crate::transport::rich_status::{internal, plain};
use crate::transport::routes::{Refusal, Target as _};

/// Checks the credential and the role, and leaves the caller with the request. `names` are those of
/// the client's certificate.
pub fn authorize<B>(
    access: &Access,
    request: &mut http::Request<B>,
    names: &[String],
) -> Result<Option<Arc<Caller>>, Refusal> {
    let needs = Target::of(request.uri().path()).method().needs;
    if needs == Needs::Nothing {
        return Ok(None);
    }
    let caller = access.caller(request.headers(), names);
    let caller = caller.ok_or_else(|| Refusal { caller: None, status: unauthenticated() })?;
    if let Needs::Role(least) = needs
        && caller.role < least
    {
        return Err(Refusal { caller: Some(caller), status: role_too_low("this method", least) });
    }

    request.extensions_mut().insert(caller.clone());
    Ok(Some(caller))
}

/// The caller of a request, and its message.
pub fn with_caller<M>(mut request: Request<M>) -> Result<(Arc<Caller>, M), Status> {
    let caller = request.extensions_mut().remove::<Arc<Caller>>().ok_or_else(internal)?;
    Ok((caller, request.into_inner()))
}

/// The tenant of a request, if the caller may work in it. The answer does not depend on whether
/// the tenant exists.
pub fn permitted_tenant(caller: &Caller, name: &str) -> Result<Tenant, Status> {
    let tenant = Tenant::parse(name).map_err(status)?;
    if !caller.tenants.contains(tenant.as_str()) {
        let message = "this credential is not for this tenant: its `tenants` in the server's \
            credentials file name others";
        return Err(plain(Code::PermissionDenied, "TENANT_DENIED", message));
    }
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
