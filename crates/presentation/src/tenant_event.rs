//! Events of tenants.

use polynym_proto::v1::TenantDeletion;
use polynym_proto::v1::tenant_event::Change;

/// A change of a tenant in words, such as `deletion begun, with its users`.
pub fn phrase(change: &Change) -> String {
    let users = |deletion: &TenantDeletion| {
        if deletion.delete_users { ", with its users" } else { "" }
    };
    match change {
        Change::Created(_) => "created".to_owned(),
        Change::PoliciesChanged(_) => "policies changed".to_owned(),
        Change::DeletionBegun(deletion) => format!("deletion begun{}", users(deletion)),
        Change::DeletionCancelled(_) => "deletion cancelled: it had users".to_owned(),
        Change::Deleted(deletion) => format!("deleted{}", users(deletion)),
        Change::UserPurged(_) => "user purged".to_owned(),
    }
}

/// The subject of a change: the user that was purged, or the paths of policies.
pub fn subject(change: &Change) -> String {
    match change {
        Change::UserPurged(purge) => purge.user_id.clone(),
        Change::PoliciesChanged(change) => change.paths.join(", "),
        _ => String::new(),
    }
}
