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

const DIRECTORY: &str = "polynym.v1.DirectoryService";
const REGISTRY: &str = "polynym.v1.RegistryService";
const INBOX: &str = "polynym.v1.InboxService";
const ADMIN: &str = "polynym.v1.AdminService";

/// The services of the API.
pub const SERVICES: [&str; 4] = [DIRECTORY, REGISTRY, INBOX, ADMIN];

/// Streams that come to an end by themselves.
const fn finite(limit: usize) -> MethodKind {
    MethodKind::Stream { limit, is_finite: true }
}

/// Streams without an end.
pub const WATCH: MethodKind = MethodKind::Stream { limit: MAX_WATCHES, is_finite: false };

/// The methods of the API.
pub fn methods(api: &Arc<Api>) -> Vec<Method> {
    [directory(api), registry(api), inbox(api), admin(api)].into_iter().flatten().collect()
}

fn directory(api: &Arc<Api>) -> Vec<Method> {
    let max_items = api.directory.limits().batch;
    let read = |name, role, handler| {
        method(DIRECTORY, name, role, MethodKind::Read, MAX_BATCH_BYTES, handler)
    };
    let look_up = |name, handler| read(name, Role::Resolver, handler);
    let view = |name, handler| read(name, Role::Viewer, handler);
    vec![
        look_up("ResolveIdentity", unary!(api.resolve_identity)),
        look_up("BatchResolveIdentities", batch(max_items, unary!(api.batch_resolve_identities))),
        look_up("GetUser", unary!(api.get_user)),
        look_up("BatchGetUsers", batch(max_items, unary!(api.batch_get_users))),
        look_up("NormalizeIdentity", unary!(api.normalize_identity)),
        look_up("CheckIdentity", unary!(api.check_identity)),
        scan(view("SearchUsers", unary!(api.search_users))),
        scan(view("ListHistory", unary!(api.list_history))),
        view("ListOwners", unary!(api.list_owners)),
        scan(view("ListEvents", unary!(api.list_events))),
        Method {
            kind: WATCH,
            lines: Some(&watch::LINES),
            ..view("Watch", server_stream!(api.watch))
        },
    ]
}

fn registry(api: &Arc<Api>) -> Vec<Method> {
    let change = |name, handler| {
        method(REGISTRY, name, Role::Registrar, MethodKind::Mutation, MAX_USER_BYTES, handler)
    };
    let view = |name, handler| {
        method(REGISTRY, name, Role::Viewer, MethodKind::Read, MAX_USER_BYTES, handler)
    };
    vec![
        change("CreateUser", unary!(api.create_user)),
        change("UpdateUser", unary!(api.update_user)),
        change("LinkIdentity", unary!(api.link_identity)),
        change("UnlinkIdentity", unary!(api.unlink_identity)),
        change("ReplaceIdentity", unary!(api.replace_identity)),
        change("VerifyIdentity", unary!(api.verify_identity)),
        change("MoveIdentity", unary!(api.move_identity)),
        change("DisableUser", unary!(api.disable_user)),
        change("EnableUser", unary!(api.enable_user)),
        change("DeleteUser", unary!(api.delete_user)),
        change("UndeleteUser", unary!(api.undelete_user)),
        change("MergeUsers", unary!(api.merge_users)),
        change("UnmergeUsers", unary!(api.unmerge_users)),
        change("StartBulkChange", unary!(api.start_bulk_change)),
        view("GetBulkChange", unary!(api.get_bulk_change)),
        view("ListBulkChanges", unary!(api.list_bulk_changes)),
        change("StopBulkChange", unary!(api.stop_bulk_change)),
        change("ResumeBulkChange", unary!(api.resume_bulk_change)),
    ]
}

fn inbox(api: &Arc<Api>) -> Vec<Method> {
    let change = |name, handler| {
        method(INBOX, name, Role::Registrar, MethodKind::Mutation, MAX_BATCH_BYTES, handler)
    };
    let view = |name, handler| {
        method(INBOX, name, Role::Viewer, MethodKind::Read, MAX_BATCH_BYTES, handler)
    };
    vec![
        change("SendNotice", unary!(api.send_notice)),
        view("ListNotices", unary!(api.list_notices)),
        change("MarkRead", unary!(api.mark_read)),
        change("DeleteNotice", unary!(api.delete_notice)),
        view("CountUnread", unary!(api.count_unread)),
    ]
}

fn admin(api: &Arc<Api>) -> Vec<Method> {
    let row = |name, role, kind, handler| method(ADMIN, name, role, kind, MAX_USER_BYTES, handler);
    let change = |name, handler| row(name, Role::Admin, MethodKind::Mutation, handler);
    let read = |name, handler| row(name, Role::Admin, MethodKind::Read, handler);
    let view = |name, handler| row(name, Role::Viewer, MethodKind::Read, handler);
    let stream = |name, limit, handler| Method {
        max_message_bytes: MAX_STREAM_BYTES,
        ..row(name, Role::Admin, finite(limit), handler)
    };
    vec![
        change("PurgeUser", unary!(api.purge_user)),
        change("ReleaseHold", unary!(api.release_hold)),
        // Moves a tenant to new rules and reports progress.
        stream("Renormalize", MAX_RENORMALIZATIONS, server_stream!(api.renormalize)),
        view("GetTenant", unary!(api.get_tenant)),
        change("UpdateTenant", unary!(api.update_tenant)),
        change("DeleteTenant", unary!(api.delete_tenant)),
        scan(view("ListTenants", unary!(api.list_tenants))),
        scan(view("ListTenantHistory", unary!(api.list_tenant_history))),
        scan(read("GetUsage", unary!(api.get_usage))),
        scan(view("ListAttributeNames", unary!(api.list_attribute_names))),
        Method {
            lines: Some(&lines::IMPORT),
            ..stream("ImportUsers", MAX_IMPORTS, client_stream!(api.import_users))
        },
        Method {
            lines: Some(&lines::EXPORT),
            ..scan(stream("ExportUsers", MAX_EXPORTS, server_stream!(api.export_users)))
        },
        scan(stream("FindDuplicates", MAX_DUPLICATE_SEARCHES, server_stream!(api.find_duplicates))),
        scan(stream("UndoOperation", MAX_UNDOINGS, server_stream!(api.undo_operation))),
        stream("BackupStore", MAX_BACKUPS, server_stream!(api.backup_store)),
    ]
}

const fn method(
    service: &'static str,
    name: &'static str,
    role: Role,
    kind: MethodKind,
    max_message_bytes: usize,
    handler: Handler,
) -> Method {
    let requirement = Requirement::Role(role);
    let (is_scan, lines) = (false, None);
    Method { service, name, requirement, kind, is_scan, max_message_bytes, lines, handler }
}

/// Reads many users or events.
fn scan(method: Method) -> Method {
    Method { is_scan: true, ..method }
}

#[cfg(test)]
mod tests {
    use locality_uuid::{Generator, Mode};
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
        methods(&Arc::new(Api::new(directory, stopping)))
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
        assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    }
}
