//! Tenants and their events.

use polynym_presentation::tenant_event;
use polynym_proto::v1;
use v1::tenant_event::Change;

use super::Time;
use super::policies::{PolicyChange, changes};
use super::text::capitalized;

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
        let change = event.change.as_ref();
        let text = change.map_or_else(|| "unknown change".to_owned(), tenant_event::phrase);
        let mut changes = change.map(policy_changes).unwrap_or_default();
        let more = changes.len().saturating_sub(MAX_CHANGES);
        changes.truncate(MAX_CHANGES);
        Self {
            time: Time::of(event.time.as_ref()),
            text: capitalized(&text),
            user: change.map(purged).unwrap_or_default(),
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

/// The policies that changed.
fn policy_changes(change: &Change) -> Vec<PolicyChange> {
    let Change::PoliciesChanged(change) = change else { return Vec::new() };
    let default = v1::Policies::default();
    let [before, after] =
        [&change.before, &change.after].map(|side| side.as_ref().unwrap_or(&default));
    changes(before, after)
}

/// The user that was purged; empty for other events.
fn purged(change: &Change) -> String {
    match change {
        Change::UserPurged(purge) => purge.user_id.clone(),
        _ => String::new(),
    }
}
