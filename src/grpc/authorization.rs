//! The right to make a call: the credential and the role are checked by the headers, before the
//! body is read; the tenant once the message is decoded, before anything is looked up.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use tonic::{Code, Request, Status};

use super::router::Target;
use super::status::status;
use crate::access::{Access, Caller, Role};
use crate::directory::model::tenant::Tenant;
use crate::transport::protocol;
use crate::transport::rich_status::{internal, plain};
use crate::transport::routes::Target as _;

/// Checks the credential and the role, and leaves the caller with the request.
pub fn authorize<B>(access: &Access, request: &mut http::Request<B>) -> Result<(), Status> {
    let target = Target::of(request.uri().path());
    if matches!(target, Target::Health | Target::Watch) {
        return Ok(());
    }
    let header = request.headers().get(AUTHORIZATION);
    let caller = access.caller(header.map(|value| value.as_bytes())).ok_or_else(unauthenticated)?;
    if !matches!(target, Target::Unknown | Target::Reflection | Target::ReflectionAlpha) {
        let least = least_role(target, request.uri().path());
        let least = least.ok_or_else(protocol::unknown_method)?;
        if caller.role < least {
            return Err(role_too_low(least));
        }
    }

    request.extensions_mut().insert(caller);
    Ok(())
}

/// The least role that may call a method. A method that is not listed cannot be called.
fn least_role(target: Target, path: &str) -> Option<Role> {
    let method = path.rsplit('/').next().unwrap_or_default();
    match target {
        Target::Directory => match method {
            "ResolveIdentity"
            | "BatchResolveIdentities"
            | "GetUser"
            | "BatchGetUsers"
            | "NormalizeIdentity"
            | "CheckIdentity" => Some(Role::Resolver),
            _ => None,
        },
        Target::Registry => match method {
            "CreateUser" | "UpdateUser" | "LinkIdentity" | "UnlinkIdentity" | "ReplaceIdentity"
            | "VerifyIdentity" | "MoveIdentity" | "DisableUser" | "EnableUser" | "DeleteUser"
            | "UndeleteUser" | "MergeUsers" | "UnmergeUsers" => Some(Role::Registrar),
            _ => None,
        },
        Target::Admin | Target::Renormalize => match method {
            "PurgeUser" | "ReleaseHold" | "Renormalize" | "GetTenant" | "UpdateTenant"
            | "DeleteTenant" | "ListTenants" => Some(Role::Admin),
            _ => None,
        },
        _ => None,
    }
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
        in the server's credentials file and has not expired";
    plain(Code::Unauthenticated, "CREDENTIAL_INVALID", message)
}

fn role_too_low(least: Role) -> Status {
    let message = format!("this method needs the role {least}: the credential has a lesser one");
    plain(Code::PermissionDenied, "ROLE_DENIED", &message)
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;
    use crate::proto::DESCRIPTORS;

    #[test]
    fn every_method_of_the_api_has_a_least_role() {
        let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
        let mut counts = [0; 3];
        for service in pool.services() {
            let expected = match service.name() {
                "DirectoryService" => Role::Resolver,
                "RegistryService" => Role::Registrar,
                "AdminService" => Role::Admin,
                other => panic!("{other} has no role"),
            };
            for method in service.methods() {
                let path = format!("/{}/{}", service.full_name(), method.name());
                assert_eq!(least_role(Target::of(&path), &path), Some(expected), "{path}");
                counts[expected as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    }

    #[test]
    fn other_methods_have_none() {
        for path in ["/polynym.v1.AdminService/Nothing", "/polynym.v1.AdminService/", "/x/GetUser"]
        {
            assert_eq!(least_role(Target::of(path), path), None, "{path}");
        }
    }
}
