//! The methods that are served, a row each: its name, the role that it needs, the kind of its
//! calls, and its handler. Only listed methods can be called.

use std::sync::Arc;

use super::api::Api;
use super::batches::batch;
use super::handlers::{client_stream, server_stream, unary};
use crate::MAX_STREAM_BYTES;
use crate::http::{lines, watch};
use polynym_access::Role;
use polynym_transport::method::{Handler, Method, MethodKind, Requirement};

/// The maximum request of DirectoryService and InboxService: a full batch.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// The maximum request of RegistryService and AdminService: a full user.
const MAX_USER_BYTES: usize = 64 << 10;
/// The maximum request of StartBulkChange: a full list of users.
const MAX_LIST_BYTES: usize = 5 << 19;

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

/// A service of the API.
struct Service {
    name: &'static str,
    /// The least role for its methods, except for those that only show something.
    role: Role,
    /// The size of the largest request, except in streams.
    max_message_bytes: usize,
}

const DIRECTORY: Service = Service {
    name: "polynym.v1.DirectoryService",
    role: Role::Resolver,
    max_message_bytes: MAX_BATCH_BYTES,
};
const REGISTRY: Service = Service {
    name: "polynym.v1.RegistryService",
    role: Role::Registrar,
    max_message_bytes: MAX_USER_BYTES,
};
const INBOX: Service = Service {
    name: "polynym.v1.InboxService",
    role: Role::Registrar,
    max_message_bytes: MAX_BATCH_BYTES,
};
const ADMIN: Service = Service {
    name: "polynym.v1.AdminService",
    role: Role::Admin,
    max_message_bytes: MAX_USER_BYTES,
};

/// The names of the services of the API.
pub const SERVICES: [&str; 4] = [DIRECTORY.name, REGISTRY.name, INBOX.name, ADMIN.name];

impl Service {
    /// Changes something.
    const fn change(&self, name: &'static str, handler: Handler) -> Method {
        self.method(name, self.role, MethodKind::Mutation, handler)
    }

    /// Changes nothing.
    const fn read(&self, name: &'static str, handler: Handler) -> Method {
        self.method(name, self.role, MethodKind::Read, handler)
    }

    /// Changes nothing, and shows what a resolver may not see.
    const fn view(&self, name: &'static str, handler: Handler) -> Method {
        self.method(name, Role::Viewer, MethodKind::Read, handler)
    }

    /// Its calls are streams that come to an end by themselves.
    fn stream(&self, name: &'static str, limit: usize, handler: Handler) -> Method {
        let kind = MethodKind::Stream { limit, is_finite: true };
        let method = self.method(name, self.role, kind, handler);
        Method { max_message_bytes: MAX_STREAM_BYTES, ..method }
    }

    const fn method(
        &self,
        name: &'static str,
        role: Role,
        kind: MethodKind,
        handler: Handler,
    ) -> Method {
        let requirement = Requirement::Role(role);
        Method::new(self.name, name, requirement, kind, self.max_message_bytes, handler)
    }
}

/// Streams without an end.
pub const WATCH: MethodKind = MethodKind::Stream { limit: MAX_WATCHES, is_finite: false };

/// The methods of the API.
pub fn methods(api: &Arc<Api>) -> Vec<Method> {
    [directory(api), registry(api), inbox(api), admin(api)].into_iter().flatten().collect()
}

fn directory(api: &Arc<Api>) -> Vec<Method> {
    let max_items = api.directory.limits().batch;
    vec![
        DIRECTORY.read("ResolveIdentity", unary!(api.resolve_identity)),
        DIRECTORY
            .read("BatchResolveIdentities", batch(max_items, unary!(api.batch_resolve_identities))),
        DIRECTORY.read("GetUser", unary!(api.get_user)),
        DIRECTORY.read("BatchGetUsers", batch(max_items, unary!(api.batch_get_users))),
        DIRECTORY.read("NormalizeIdentity", unary!(api.normalize_identity)),
        DIRECTORY.read("CheckIdentity", unary!(api.check_identity)),
        scan(DIRECTORY.view("SearchUsers", unary!(api.search_users))),
        scan(DIRECTORY.read("FindUsers", unary!(api.find_users))),
        scan(DIRECTORY.view("ListHistory", unary!(api.list_history))),
        DIRECTORY.view("ListOwners", unary!(api.list_owners)),
        scan(DIRECTORY.view("ListEvents", unary!(api.list_events))),
        Method {
            kind: WATCH,
            lines: Some(&watch::LINES),
            ..DIRECTORY.view("Watch", server_stream!(api.watch))
        },
    ]
}

fn registry(api: &Arc<Api>) -> Vec<Method> {
    vec![
        REGISTRY.change("CreateUser", unary!(api.create_user)),
        REGISTRY.change("UpdateUser", unary!(api.update_user)),
        REGISTRY.change("LinkIdentity", unary!(api.link_identity)),
        REGISTRY.change("UnlinkIdentity", unary!(api.unlink_identity)),
        REGISTRY.change("ReplaceIdentity", unary!(api.replace_identity)),
        REGISTRY.change("VerifyIdentity", unary!(api.verify_identity)),
        REGISTRY.change("MoveIdentity", unary!(api.move_identity)),
        REGISTRY.change("DisableUser", unary!(api.disable_user)),
        REGISTRY.change("EnableUser", unary!(api.enable_user)),
        REGISTRY.change("DeleteUser", unary!(api.delete_user)),
        REGISTRY.change("UndeleteUser", unary!(api.undelete_user)),
        REGISTRY.change("MergeUsers", unary!(api.merge_users)),
        REGISTRY.change("UnmergeUsers", unary!(api.unmerge_users)),
        Method {
            max_message_bytes: MAX_LIST_BYTES,
            ..REGISTRY.change("StartBulkChange", unary!(api.start_bulk_change))
        },
        REGISTRY.view("GetBulkChange", unary!(api.get_bulk_change)),
        REGISTRY.view("ListBulkChanges", unary!(api.list_bulk_changes)),
        REGISTRY.change("StopBulkChange", unary!(api.stop_bulk_change)),
        REGISTRY.change("ResumeBulkChange", unary!(api.resume_bulk_change)),
    ]
}

fn inbox(api: &Arc<Api>) -> Vec<Method> {
    vec![
        INBOX.change("SendNotice", unary!(api.send_notice)),
        INBOX.view("ListNotices", unary!(api.list_notices)),
        INBOX.change("MarkRead", unary!(api.mark_read)),
        INBOX.change("DeleteNotice", unary!(api.delete_notice)),
        INBOX.view("CountUnread", unary!(api.count_unread)),
    ]
}

fn admin(api: &Arc<Api>) -> Vec<Method> {
    vec![
        ADMIN.change("PurgeUser", unary!(api.purge_user)),
        ADMIN.change("ReleaseHold", unary!(api.release_hold)),
        // Moves a tenant to new rules and reports progress.
        ADMIN.stream("Renormalize", MAX_RENORMALIZATIONS, server_stream!(api.renormalize)),
        ADMIN.view("GetTenant", unary!(api.get_tenant)),
        ADMIN.change("UpdateTenant", unary!(api.update_tenant)),
        ADMIN.change("DeleteTenant", unary!(api.delete_tenant)),
        scan(ADMIN.view("ListTenants", unary!(api.list_tenants))),
        scan(ADMIN.view("ListTenantHistory", unary!(api.list_tenant_history))),
        scan(ADMIN.read("GetUsage", unary!(api.get_usage))),
        scan(ADMIN.view("ListAttributeNames", unary!(api.list_attribute_names))),
        Method {
            lines: Some(&lines::IMPORT),
            ..ADMIN.stream("ImportUsers", MAX_IMPORTS, client_stream!(api.import_users))
        },
        Method {
            lines: Some(&lines::EXPORT),
            ..scan(ADMIN.stream("ExportUsers", MAX_EXPORTS, server_stream!(api.export_users)))
        },
        scan(ADMIN.stream(
            "FindDuplicates",
            MAX_DUPLICATE_SEARCHES,
            server_stream!(api.find_duplicates),
        )),
        scan(ADMIN.stream("UndoOperation", MAX_UNDOINGS, server_stream!(api.undo_operation))),
        ADMIN.stream("BackupStore", MAX_BACKUPS, server_stream!(api.backup_store)),
        ADMIN.change("CreateDelivery", unary!(api.create_delivery)),
        ADMIN.change("UpdateDelivery", unary!(api.update_delivery)),
        ADMIN.read("ListDeliveries", unary!(api.list_deliveries)),
        ADMIN.change("DeleteDelivery", unary!(api.delete_delivery)),
        ADMIN.read("ListDeliveryAttempts", unary!(api.list_delivery_attempts)),
        ADMIN.change("ReplayDelivery", unary!(api.replay_delivery)),
        ADMIN.change("TestDelivery", unary!(api.test_delivery)),
    ]
}

/// Reads many users or events.
fn scan(method: Method) -> Method {
    Method { is_scan: true, ..method }
}

#[cfg(test)]
mod tests {
    use locality_uuid::{Generator, Mode};
    use polynym_deliver::{AddressPolicy, Deliverer};
    use polynym_directory::{Directory, Limits};
    use polynym_embedded::{Embedded, Options};
    use polynym_proto::DESCRIPTORS;
    use prost_reflect::DescriptorPool;
    use prost_types::method_options::IdempotencyLevel;

    use super::*;

    fn rows() -> Vec<Method> {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { create: true, ..Options::default() };
        let store = Arc::new(Embedded::open(folder.path(), options).unwrap()).backend();
        let ids = Generator::new(Mode::Variable);
        let directory = Arc::new(Directory::new(store, ids, Limits::default()));
        let (_, stopping) = tokio::sync::watch::channel(false);
        let deliverer = Deliverer::new(directory.clone(), AddressPolicy::default());
        methods(&Arc::new(Api::new(directory, Arc::new(deliverer), stopping)))
    }

    #[test]
    fn every_method_of_the_api_has_a_row_with_its_role_and_kind() {
        let rows = rows();
        let row = |service: &str, name: &str| {
            let mut found = rows.iter().filter(|row| (row.service, row.name) == (service, name));
            let row = found.next().unwrap_or_else(|| panic!("{service}/{name} has no row"));
            assert!(found.next().is_none(), "{service}/{name} has two rows");
            row
        };
        let (mut counts, mut methods) = ([0; Role::ALL.len()], 0);
        for service in DescriptorPool::decode(DESCRIPTORS).unwrap().services() {
            let expected = match service.name() {
                "DirectoryService" => Role::Resolver,
                "RegistryService" | "InboxService" => Role::Registrar,
                "AdminService" => Role::Admin,
                other => panic!("{other} has no role"),
            };
            for method in service.methods() {
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
                let (path, row) = (method.full_name(), row(service.full_name(), method.name()));
                assert_eq!(row.requirement, Requirement::Role(expected), "{path}");
                let options = method.method_descriptor_proto().options.clone();
                let only_reads = options.unwrap_or_default().idempotency_level()
                    == IdempotencyLevel::NoSideEffects;
                match row.kind {
                    MethodKind::Stream { .. } => assert!(method.is_server_streaming(), "{path}"),
                    kind => {
                        assert!(!method.is_server_streaming(), "{path}");
                        assert_eq!(kind == MethodKind::Read, only_reads, "{path}");
                    }
                }
                counts[expected as usize] += 1;
                methods += 1;
            }
        }
        assert_eq!(methods, rows.len());
        assert_eq!(counts[Role::Monitor as usize], 0);
        assert!(counts[Role::Resolver as usize..].iter().all(|count| *count > 5), "{counts:?}");
    }
}
