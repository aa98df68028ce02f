//! The unary calls by name, since the testbed names methods and programs call functions.

use polynym_client::Client;
use serde_json::{Value, json};
use tonic::Request;

use crate::puppet::{decode, outcome};

/// Makes the call of a step.
#[expect(clippy::too_many_lines, reason = "a list with a line for each method")]
pub async fn call(client: &Client, step: &Value) -> Value {
    macro_rules! calls {
        ($($service:ident . $method:ident: $name:literal;)*) => {
            match step["method"].as_str().unwrap() {
                $($name => {
                    let request = &step["request"];
                    outcome(&client.$service().$method(Request::new(decode(request))).await)
                })*
                name => json!({ "error": { "type": "UNIMPLEMENTED", "reason": name } }),
            }
        };
    }
    calls! {
        directory.resolve_identity: "ResolveIdentity";
        directory.batch_resolve_identities: "BatchResolveIdentities";
        directory.get_user: "GetUser";
        directory.batch_get_users: "BatchGetUsers";
        directory.normalize_identity: "NormalizeIdentity";
        directory.check_identity: "CheckIdentity";
        directory.search_users: "SearchUsers";
        directory.find_users: "FindUsers";
        directory.list_history: "ListHistory";
        directory.list_owners: "ListOwners";
        directory.list_events: "ListEvents";
        registry.create_user: "CreateUser";
        registry.update_user: "UpdateUser";
        registry.link_identity: "LinkIdentity";
        registry.unlink_identity: "UnlinkIdentity";
        registry.replace_identity: "ReplaceIdentity";
        registry.verify_identity: "VerifyIdentity";
        registry.move_identity: "MoveIdentity";
        registry.disable_user: "DisableUser";
        registry.enable_user: "EnableUser";
        registry.delete_user: "DeleteUser";
        registry.undelete_user: "UndeleteUser";
        registry.merge_users: "MergeUsers";
        registry.unmerge_users: "UnmergeUsers";
        registry.start_bulk_change: "StartBulkChange";
        registry.get_bulk_change: "GetBulkChange";
        registry.list_bulk_changes: "ListBulkChanges";
        registry.stop_bulk_change: "StopBulkChange";
        registry.resume_bulk_change: "ResumeBulkChange";
        inbox.send_notice: "SendNotice";
        inbox.list_notices: "ListNotices";
        inbox.mark_read: "MarkRead";
        inbox.delete_notice: "DeleteNotice";
        inbox.count_unread: "CountUnread";
        admin.purge_user: "PurgeUser";
        admin.release_hold: "ReleaseHold";
        admin.get_tenant: "GetTenant";
        admin.update_tenant: "UpdateTenant";
        admin.delete_tenant: "DeleteTenant";
        admin.list_tenants: "ListTenants";
        admin.list_tenant_history: "ListTenantHistory";
        admin.get_usage: "GetUsage";
        admin.list_attribute_names: "ListAttributeNames";
    }
}
