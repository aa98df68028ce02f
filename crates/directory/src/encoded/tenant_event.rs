//! The encoded forms of events of tenants, in stores and in the API's messages.

use prost::Message;

use crate::encoded::decode::{read_id, read_optional_id, read_tenant, read_time};
use crate::encoded::encode::time_message;
use crate::encoded::error::WireError;
use crate::encoded::tenant::{differing_policies, policies_message, read_policies};
use crate::model::event::Origin;
use crate::model::tenant_event::{TenantEvent, TenantEventKind};
use polynym_proto::v1;
use polynym_proto::v1::tenant_event::Change;

/// An event of a tenant as the API's message.
pub fn tenant_event_message(event: &TenantEvent) -> v1::TenantEvent {
    v1::TenantEvent {
        event_id: format!("{}:{}", event.tenant, event.sequence),
        ..stored_message(event)
    }
}

/// The stored form of an event of a tenant, without its sequence number.
pub fn encode_tenant_event(event: &TenantEvent) -> Vec<u8> {
    stored_message(event).encode_to_vec()
}

/// Decodes the output of [`encode_tenant_event`].
pub fn decode_tenant_event(sequence: u64, bytes: &[u8]) -> Result<TenantEvent, WireError> {
    let message = v1::TenantEvent::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    let change = message.change.ok_or_else(|| WireError("an event without a change".into()))?;
    Ok(TenantEvent {
        tenant: read_tenant(&message.tenant)?,
        sequence,
        time: read_time(message.time),
        origin: Origin {
            caller: message.caller,
            method: message.method,
            request_id: read_optional_id(&message.request_id)?,
            reason: message.reason,
            operation_id: message.operation_id,
        },
        kind: kind_of(change)?,
    })
}

fn stored_message(event: &TenantEvent) -> v1::TenantEvent {
    let Origin { caller, method, request_id, reason, operation_id } = &event.origin;
    v1::TenantEvent {
        event_id: String::new(),
        time: Some(time_message(event.time)),
        tenant: event.tenant.as_str().to_owned(),
        caller: caller.clone(),
        method: method.clone(),
        request_id: request_id.map(|id| id.to_string()).unwrap_or_default(),
        reason: reason.clone(),
        operation_id: operation_id.clone(),
        change: Some(change_of(&event.kind)),
    }
}

fn change_of(kind: &TenantEventKind) -> Change {
    match kind {
        TenantEventKind::Created(policies) => Change::Created(policies_message(policies)),
        TenantEventKind::PoliciesChanged { before, after } => {
            let [before, after] = [before, after].map(|policies| policies_message(policies));
            Change::PoliciesChanged(v1::PoliciesChange {
                paths: differing_policies(&before, &after),
                before: Some(before),
                after: Some(after),
            })
        }
        TenantEventKind::DeletionBegun { with_users } => {
            Change::DeletionBegun(v1::TenantDeletion { delete_users: *with_users })
        }
        TenantEventKind::DeletionCancelled => {
            Change::DeletionCancelled(v1::TenantDeletion::default())
        }
        TenantEventKind::Deleted { with_users } => {
            Change::Deleted(v1::TenantDeletion { delete_users: *with_users })
        }
        TenantEventKind::UserPurged(id) => {
            Change::UserPurged(v1::UserPurge { user_id: id.to_string() })
        }
    }
}

fn kind_of(change: Change) -> Result<TenantEventKind, WireError> {
    let policies = |message| Box::new(read_policies(message));
    Ok(match change {
        Change::Created(created) => TenantEventKind::Created(policies(created)),
        Change::PoliciesChanged(change) => TenantEventKind::PoliciesChanged {
            before: policies(change.before.unwrap_or_default()),
            after: policies(change.after.unwrap_or_default()),
        },
        Change::DeletionBegun(mark) => {
            TenantEventKind::DeletionBegun { with_users: mark.delete_users }
        }
        Change::DeletionCancelled(_) => TenantEventKind::DeletionCancelled,
        Change::Deleted(mark) => TenantEventKind::Deleted { with_users: mark.delete_users },
        Change::UserPurged(purge) => TenantEventKind::UserPurged(read_id(&purge.user_id)?),
    })
}
