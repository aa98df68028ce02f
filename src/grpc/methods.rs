//! The methods that are served, with the roles that they require. Only listed methods can be
//! called.

use polynym_access::Role;
use polynym_transport::routes::{self, PermitKind};

/// The maximum request of DirectoryService and InboxService: a full batch.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// The maximum request of RegistryService and AdminService: a full user.
const MAX_USER_BYTES: usize = 64 << 10;
/// The maximum message of a stream to AdminService: a user with the undo record of its merge.
pub const MAX_STREAM_BYTES: usize = 1 << 20;
/// The maximum request of health and reflection.
pub const MAX_SMALL_BYTES: usize = 4 << 10;

/// The maximum number of open streams of each method on a server. A caller has half of them.
const MAX_WATCHES: usize = 1_024;
const MAX_RENORMALIZATIONS: usize = 8;
const MAX_IMPORTS: usize = 4;
const MAX_EXPORTS: usize = 64;
/// Each has up to 100 MiB of keys in memory.
const MAX_DUPLICATE_SEARCHES: usize = 2;
/// Each copy takes the disk space of the store.
const MAX_BACKUPS: usize = 2;
const MAX_UNDOINGS: usize = 4;
const MAX_REFLECTIONS: usize = 64;

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
    /// A service that is not served.
    Unknown,
}

/// The credential that a method requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    Role(Role),
    /// A credential of any role.
    Credential,
    None,
}

/// A method.
#[derive(Debug)]
pub struct Method {
    path: &'static str,
    pub service: Service,
    pub requirement: Requirement,
    /// The kind of permit that a call takes.
    permit: Option<PermitKind>,
    /// The maximum number of open streams, of which a caller has half; none if its calls are not
    /// streams.
    max_streams: Option<usize>,
    /// Whether its streams come to an end by themselves.
    is_finite: bool,
    /// Whether a call may compute for long, so that it takes turns with others.
    is_scan: bool,
}

const fn method(path: &'static str, service: Service, role: Role, permit: PermitKind) -> Method {
    let (requirement, permit) = (Requirement::Role(role), Some(permit));
    Method {
        path,
        service,
        requirement,
        permit,
        max_streams: None,
        is_finite: false,
        is_scan: false,
    }
}

const fn look_up(path: &'static str) -> Method {
    method(path, Service::Directory, Role::Resolver, PermitKind::Read)
}

const fn mutation(path: &'static str) -> Method {
    method(path, Service::Registry, Role::Registrar, PermitKind::Mutation)
}

const fn admin(path: &'static str) -> Method {
    method(path, Service::Admin, Role::Admin, PermitKind::Mutation)
}

const fn inbox(path: &'static str, permit: PermitKind) -> Method {
    method(path, Service::Inbox, Role::Registrar, permit)
}

const fn health(path: &'static str) -> Method {
    let (service, requirement) = (Service::Health, Requirement::None);
    Method {
        path,
        service,
        requirement,
        permit: None,
        max_streams: None,
        is_finite: false,
        is_scan: false,
    }
}

const fn reflection(path: &'static str, service: Service) -> Method {
    let (requirement, max_streams) = (Requirement::Credential, Some(MAX_REFLECTIONS));
    Method {
        path,
        service,
        requirement,
        permit: None,
        max_streams,
        is_finite: false,
        is_scan: false,
    }
}

/// Its calls are streams that come to an end by themselves.
const fn stream(max_streams: usize, method: Method) -> Method {
    Method { max_streams: Some(max_streams), permit: None, is_finite: true, ..method }
}

/// Its calls are streams without an end.
const fn watch(method: Method) -> Method {
    Method { max_streams: Some(MAX_WATCHES), permit: None, ..method }
}

/// Reads many users or events.
const fn scan(method: Method) -> Method {
    Method { is_scan: true, ..method }
}

/// Shows what a resolver may not see, and changes nothing.
const fn view(method: Method) -> Method {
    Method { requirement: Requirement::Role(Role::Viewer), ..read(method) }
}

/// Changes nothing.
const fn read(method: Method) -> Method {
    Method { permit: Some(PermitKind::Read), ..method }
}

static METHODS: &[Method] = &[
    look_up("/polynym.v1.DirectoryService/ResolveIdentity"),
    look_up("/polynym.v1.DirectoryService/BatchResolveIdentities"),
    look_up("/polynym.v1.DirectoryService/GetUser"),
    look_up("/polynym.v1.DirectoryService/BatchGetUsers"),
    look_up("/polynym.v1.DirectoryService/NormalizeIdentity"),
    look_up("/polynym.v1.DirectoryService/CheckIdentity"),
    scan(view(look_up("/polynym.v1.DirectoryService/SearchUsers"))),
    scan(view(look_up("/polynym.v1.DirectoryService/ListHistory"))),
    view(look_up("/polynym.v1.DirectoryService/ListOwners")),
    scan(view(look_up("/polynym.v1.DirectoryService/ListEvents"))),
    watch(view(look_up("/polynym.v1.DirectoryService/Watch"))),
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
    mutation("/polynym.v1.RegistryService/StartBulkChange"),
    view(mutation("/polynym.v1.RegistryService/GetBulkChange")),
    view(mutation("/polynym.v1.RegistryService/ListBulkChanges")),
    mutation("/polynym.v1.RegistryService/StopBulkChange"),
    mutation("/polynym.v1.RegistryService/ResumeBulkChange"),
    inbox("/polynym.v1.InboxService/SendNotice", PermitKind::Mutation),
    view(inbox("/polynym.v1.InboxService/ListNotices", PermitKind::Read)),
    inbox("/polynym.v1.InboxService/MarkRead", PermitKind::Mutation),
    inbox("/polynym.v1.InboxService/DeleteNotice", PermitKind::Mutation),
    view(inbox("/polynym.v1.InboxService/CountUnread", PermitKind::Read)),
    admin("/polynym.v1.AdminService/PurgeUser"),
    admin("/polynym.v1.AdminService/ReleaseHold"),
    // Moves a tenant to new rules and reports progress.
    stream(MAX_RENORMALIZATIONS, admin("/polynym.v1.AdminService/Renormalize")),
    view(admin("/polynym.v1.AdminService/GetTenant")),
    admin("/polynym.v1.AdminService/UpdateTenant"),
    admin("/polynym.v1.AdminService/DeleteTenant"),
    scan(view(admin("/polynym.v1.AdminService/ListTenants"))),
    scan(view(admin("/polynym.v1.AdminService/ListTenantHistory"))),
    scan(read(admin("/polynym.v1.AdminService/GetUsage"))),
    scan(view(admin("/polynym.v1.AdminService/ListAttributeNames"))),
    stream(MAX_IMPORTS, admin("/polynym.v1.AdminService/ImportUsers")),
    scan(stream(MAX_EXPORTS, admin("/polynym.v1.AdminService/ExportUsers"))),
    scan(stream(MAX_DUPLICATE_SEARCHES, admin("/polynym.v1.AdminService/FindDuplicates"))),
    scan(stream(MAX_UNDOINGS, admin("/polynym.v1.AdminService/UndoOperation"))),
    stream(MAX_BACKUPS, admin("/polynym.v1.AdminService/BackupStore")),
    health("/grpc.health.v1.Health/Check"),
    health("/grpc.health.v1.Health/List"),
    watch(health("/grpc.health.v1.Health/Watch")),
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
    requirement: Requirement::Credential,
    permit: None,
    max_streams: None,
    is_finite: false,
    is_scan: false,
};

/// The target of a call: a method of the table, the last of which is unknown.
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
    fn from_path(path: &str) -> Self {
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

    fn max_streams(self) -> Option<usize> {
        self.method().max_streams
    }

    fn is_finite(self) -> bool {
        self.method().is_finite
    }

    fn is_scan(self) -> bool {
        self.method().is_scan
    }

    fn max_message_bytes(self) -> usize {
        match self.method().service {
            Service::Directory | Service::Inbox => MAX_BATCH_BYTES,
            Service::Admin if self.max_streams().is_some() => MAX_STREAM_BYTES,
            Service::Registry | Service::Admin => MAX_USER_BYTES,
            _ => MAX_SMALL_BYTES,
        }
    }

    fn permit_kind(self) -> Option<PermitKind> {
        self.method().permit
    }
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;
    use prost_types::method_options::IdempotencyLevel;

    use super::*;
    use polynym_proto::DESCRIPTORS;
    use polynym_transport::routes::Target as _;

    #[test]
    fn every_method_of_the_api_is_listed_with_its_role_and_permit() {
        let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
        let mut counts = [0; Role::ALL.len()];
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
                    "SearchUsers" | "ListHistory" | "ListOwners" | "ListEvents" | "Watch" => {
                        Role::Viewer
                    }
                    "ListNotices" | "CountUnread" => Role::Viewer,
                    "GetTenant" | "ListTenants" | "ListTenantHistory" => Role::Viewer,
                    "ListAttributeNames" => Role::Viewer,
                    "GetBulkChange" | "ListBulkChanges" => Role::Viewer,
                    _ => expected,
                };
                let target = Target::from_path(&path);
                assert_eq!(target.method().requirement, Requirement::Role(expected), "{path}");
                assert_eq!(target.max_streams().is_some(), method.is_server_streaming(), "{path}");
                assert_eq!(target.name(), method.name());
                let options = method.method_descriptor_proto().options.clone();
                let only_reads = options.unwrap_or_default().idempotency_level()
                    == IdempotencyLevel::NoSideEffects;
                let permit = match (method.is_server_streaming(), only_reads) {
                    (true, _) => None,
                    (false, true) => Some(PermitKind::Read),
                    (false, false) => Some(PermitKind::Mutation),
                };
                assert_eq!(target.method().permit, permit, "{path}");
                counts[expected as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    }

    #[test]
    fn other_methods_are_unknown() {
        for path in ["/polynym.v1.AdminService/Nothing", "/polynym.v1.AdminService/", "/x/GetUser"]
        {
            assert_eq!(Target::from_path(path).method().service, Service::Unknown, "{path}");
            assert_eq!(Target::is_of_known_service(path), !path.starts_with("/x/"), "{path}");
        }
    }
}
