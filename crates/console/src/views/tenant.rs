//! Tenants and their events.

use polynym_proto::v1;
use v1::tenant_event::Change;

use super::Time;
use super::policies::{PolicyChange, changes};

/// A tenant in a list.
#[derive(Clone, Debug)]
pub struct TenantView {
    /// The name.
    pub name: String,
    /// When it was created.
    pub created: Option<Time>,
    /// When its policies last changed.
    pub changed: Option<Time>,
    /// When its deletion began.
    pub deleted: Option<Time>,
}

impl TenantView {
    /// The view of a tenant.
    pub fn of(tenant: &v1::Tenant) -> Self {
        Self {
            name: tenant.tenant.clone(),
            created: Time::of(tenant.create_time.as_ref()),
            changed: Time::of(tenant.update_time.as_ref()),
            deleted: Time::of(tenant.delete_time.as_ref()),
        }
    }
}

/// The maximum number of changes of an event that are shown.
const MAX_CHANGES: usize = 20;

/// An event of a tenant.
#[derive(Clone, Debug)]
pub struct TenantEventView {
    /// When it happened.
    pub time: Option<Time>,
    /// What happened, such as `Policies changed`.
    pub text: String,
    /// The user that was purged; empty for other events.
    pub user: String,
    /// The policies that changed, the first ones.
    pub changes: Vec<PolicyChange>,
    /// The number of further changes.
    pub more: usize,
    /// The caller.
    pub caller: String,
    /// The method.
    pub method: String,
    /// The id of the request; may be empty.
    pub request_id: String,
    /// The caller's reason; may be empty.
    pub reason: String,
    /// The id of the operation; may be empty.
    pub operation_id: String,
}

impl TenantEventView {
    /// The view of an event.
    pub fn of(event: &v1::TenantEvent) -> Self {
        let (text, user, mut changes) = parts(event.change.as_ref());
        let more = changes.len().saturating_sub(MAX_CHANGES);
        changes.truncate(MAX_CHANGES);
        Self {
            time: Time::of(event.time.as_ref()),
            text,
            user,
            changes,
            more,
            caller: event.caller.clone(),
            method: event.method.clone(),
            request_id: event.request_id.clone(),
            reason: event.reason.clone(),
            operation_id: event.operation_id.clone(),
        }
    }
}

fn parts(change: Option<&Change>) -> (String, String, Vec<PolicyChange>) {
    let with_users = |deletion: &v1::TenantDeletion| {
        if deletion.delete_users { " with its users" } else { "" }
    };
    let (mut user, mut changed) = (String::new(), Vec::new());
    let text = match change {
        Some(Change::Created(_)) => "Tenant created".to_owned(),
        Some(Change::PoliciesChanged(change)) => {
            let default = v1::Policies::default();
            let [before, after] =
                [&change.before, &change.after].map(|side| side.as_ref().unwrap_or(&default));
            changed = changes(before, after);
            "Policies changed".to_owned()
        }
        Some(Change::DeletionBegun(deletion)) => format!("Deletion begun{}", with_users(deletion)),
        Some(Change::DeletionCancelled(_)) => "Deletion cancelled: it had users".to_owned(),
        Some(Change::Deleted(deletion)) => format!("Tenant deleted{}", with_users(deletion)),
        Some(Change::UserPurged(purge)) => {
            user.clone_from(&purge.user_id);
            "User purged".to_owned()
        }
        None => "Unknown change".to_owned(),
    };
    (text, user, changed)
}
