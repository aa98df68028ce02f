//! The methods that are served, each with the least role that may call it. A method that is not
//! listed cannot be called.

use crate::access::Role;
use crate::transport::routes::{self, Permits};

/// The largest request of DirectoryService and InboxService: room for a full batch.
const DIRECTORY_BYTES: usize = 1 << 20;
/// The largest request of RegistryService and AdminService: room for a full user.
pub const REGISTRY_BYTES: usize = 64 << 10;
/// The largest message of a stream to AdminService: room for a user with what undoes its merge.
pub const STREAM_BYTES: usize = 1 << 20;
/// The largest request of the services that take next to nothing.
pub const SMALL_BYTES: usize = 4 << 10;

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Directory,
    Registry,
    Inbox,
    Admin,
    Health,
    Reflection,
    ReflectionAlpha,
    /// One that is not served.
    Unknown,
}

/// The rights that a method needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Role(Role),
    /// A credential of any role.
    Credential,
    Nothing,
}

/// A method.
#[derive(Debug)]
pub struct Method {
    path: &'static str,
    pub service: Service,
    pub needs: Needs,
    /// The permits of which a call takes one.
    permits: Option<Permits>,
    is_stream: bool,
}

const fn method(path: &'static str, service: Service, role: Role, permits: Permits) -> Method {
    let (needs, permits) = (Needs::Role(role), Some(permits));
    Method { path, service, needs, permits, is_stream: false }
}

const fn look_up(path: &'static str) -> Method {
    method(path, Service::Directory, Role::Resolver, Permits::Reads)
}

const fn mutation(path: &'static str) -> Method {
    method(path, Service::Registry, Role::Registrar, Permits::Mutations)
}

const fn admin(path: &'static str) -> Method {
    method(path, Service::Admin, Role::Admin, Permits::Mutations)
}

const fn inbox(path: &'static str, permits: Permits) -> Method {
    method(path, Service::Inbox, Role::Registrar, permits)
}

const fn health(path: &'static str) -> Method {
    let (service, needs) = (Service::Health, Needs::Nothing);
    Method { path, service, needs, permits: None, is_stream: false }
}

const fn reflection(path: &'static str, service: Service) -> Method {
    Method { path, service, needs: Needs::Credential, permits: None, is_stream: true }
}

const fn stream(method: Method) -> Method {
    Method { is_stream: true, permits: None, ..method }
}

const fn at_least(role: Role, method: Method) -> Method {
    Method { needs: Needs::Role(role), ..method }
}

static METHODS: [Method; 47] = [
    look_up("/polynym.v1.DirectoryService/ResolveIdentity"),
    look_up("/polynym.v1.DirectoryService/BatchResolveIdentities"),
    look_up("/polynym.v1.DirectoryService/GetUser"),
    look_up("/polynym.v1.DirectoryService/BatchGetUsers"),
    look_up("/polynym.v1.DirectoryService/NormalizeIdentity"),
    look_up("/polynym.v1.DirectoryService/CheckIdentity"),
    // Shows all users to whoever may call it.
    at_least(Role::Registrar, look_up("/polynym.v1.DirectoryService/SearchUsers")),
    at_least(Role::Registrar, look_up("/polynym.v1.DirectoryService/ListHistory")),
    stream(at_least(Role::Registrar, look_up("/polynym.v1.DirectoryService/Watch"))),
    mutation("/polynym.v1.RegistryService/CreateUser"),
    mutation("/polynym.v1.RegistryService/UpdateUser"),
    mutation("/polynym.v1.RegistryService/LinkIdentity"),
    mutation("/polynym.v1.RegistryService/UnlinkIdentity"),
    mutation("/polynym.v1.RegistryService/ReplaceIdentity"),
    mutation("/polynym.v1.RegistryService/VerifyIdentity"),
    mutation("/polynym.v1.RegistryService/MoveIdentity"),
    mutation("/polynym.v1.RegistryService/DisableUser"),
    mutation("/polynym.v1.RegistryService/EnableUser"),
    mutation("/polynym.v1.RegistryService/DeleteUser"),
    mutation("/polynym.v1.RegistryService/UndeleteUser"),
    mutation("/polynym.v1.RegistryService/MergeUsers"),
    mutation("/polynym.v1.RegistryService/UnmergeUsers"),
    inbox("/polynym.v1.InboxService/SendNotice", Permits::Mutations),
    inbox("/polynym.v1.InboxService/ListNotices", Permits::Reads),
    inbox("/polynym.v1.InboxService/MarkRead", Permits::Mutations),
    inbox("/polynym.v1.InboxService/DeleteNotice", Permits::Mutations),
    inbox("/polynym.v1.InboxService/CountUnread", Permits::Reads),
    admin("/polynym.v1.AdminService/PurgeUser"),
    admin("/polynym.v1.AdminService/ReleaseHold"),
    // Moves a tenant to new rules and reports progress.
    stream(admin("/polynym.v1.AdminService/Renormalize")),
    admin("/polynym.v1.AdminService/GetTenant"),
    admin("/polynym.v1.AdminService/UpdateTenant"),
    admin("/polynym.v1.AdminService/DeleteTenant"),
    admin("/polynym.v1.AdminService/ListTenants"),
    admin("/polynym.v1.AdminService/ListTenantHistory"),
    admin("/polynym.v1.AdminService/GetUsage"),
    admin("/polynym.v1.AdminService/ListAttributeNames"),
    stream(admin("/polynym.v1.AdminService/ImportUsers")),
    stream(admin("/polynym.v1.AdminService/ExportUsers")),
    stream(admin("/polynym.v1.AdminService/FindDuplicates")),
    stream(admin("/polynym.v1.AdminService/BackupStore")),
    health("/grpc.health.v1.Health/Check"),
    health("/grpc.health.v1.Health/List"),
    stream(health("/grpc.health.v1.Health/Watch")),
    reflection("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Service::Reflection),
    reflection(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        Service::ReflectionAlpha,
    ),
    UNKNOWN,
];

/// A method that is not served.
const UNKNOWN: Method = Method {
    path: "/unknown",
    service: Service::Unknown,
    needs: Needs::Credential,
    permits: None,
    is_stream: false,
};

/// The target of a call: a method that is served, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(usize);

impl Target {
    /// The method.
    pub fn method(self) -> &'static Method {
        &METHODS[self.0]
    }

    /// Whether the path names a service that is served.
    pub fn is_of_known_service(path: &str) -> bool {
        let end = path.rfind('/').map_or(0, |slash| slash + 1);
        end > 1 && METHODS.iter().any(|method| method.path.starts_with(&path[..end]))
    }
}

impl routes::Target for Target {
    fn of(path: &str) -> Self {
        let unknown = METHODS.len() - 1;
        Self(METHODS.iter().position(|method| method.path == path).unwrap_or(unknown))
    }

    fn index(self) -> usize {
        self.0
    }

    fn name(self) -> &'static str {
        let path = self.method().path;
        path.rsplit_once('/').map_or(path, |(_, name)| name)
    }

    fn is_stream(self) -> bool {
        self.method().is_stream
    }

    fn message_bytes(self) -> usize {
        match self.method().service {
            Service::Directory | Service::Inbox => DIRECTORY_BYTES,
            Service::Admin if self.is_stream() => STREAM_BYTES,
            Service::Registry | Service::Admin => REGISTRY_BYTES,
            _ => SMALL_BYTES,
        }
    }

    fn permits(self) -> Option<Permits> {
        self.method().permits
    }
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;
    use crate::proto::DESCRIPTORS;
    use crate::transport::routes::Target as _;

    #[test]
    fn every_method_of_the_api_is_listed_with_the_role_of_its_service() {
        let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
        let mut counts = [0; 3];
        for service in pool.services() {
            let expected = match service.name() {
                "DirectoryService" => Role::Resolver,
                "RegistryService" | "InboxService" => Role::Registrar,
                "AdminService" => Role::Admin,
                other => panic!("{other} has no role"),
            };
            for method in service.methods() {
                let path = format!("/{}/{}", service.full_name(), method.name());
                let expected = match method.name() {
                    "SearchUsers" | "ListHistory" | "Watch" => Role::Registrar,
                    _ => expected,
                };
                let target = Target::of(&path);
                assert_eq!(target.method().needs, Needs::Role(expected), "{path}");
                assert_eq!(target.is_stream(), method.is_server_streaming(), "{path}");
                assert_eq!(target.name(), method.name());
                counts[expected as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    }

    #[test]
    fn others_are_unknown() {
        for path in ["/polynym.v1.AdminService/Nothing", "/polynym.v1.AdminService/", "/x/GetUser"]
        {
            assert_eq!(Target::of(path).method().service, Service::Unknown, "{path}");
            assert_eq!(Target::is_of_known_service(path), !path.starts_with("/x/"), "{path}");
        }
    }
}
