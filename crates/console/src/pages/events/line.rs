//! An event in a list.

use polynym_proto::v1::event::Change;
use polynym_proto::v1::{Event, EventType};

use super::query::KINDS;
use crate::views::Time;

/// An event in a list.
pub struct EventLine {
    pub id: String,
    pub time: Option<Time>,
    pub kind: &'static str,
    pub user: String,
    pub caller: String,
    pub method: String,
    pub request_id: String,
}

impl EventLine {
    /// The line of an event.
    pub fn of(event: &Event) -> Self {
        let kind = event.change.as_ref().map(kind_of);
        let named = KINDS.iter().find(|(own, _)| Some(*own) == kind);
        Self {
            id: event.event_id.clone(),
            time: Time::of(event.time.as_ref()),
            kind: named.map_or("unknown", |(_, name)| name),
            user: event.user_id.clone(),
            caller: event.caller.clone(),
            method: event.method.clone(),
            request_id: event.request_id.clone(),
        }
    }
}

const fn kind_of(change: &Change) -> EventType {
    match change {
        Change::HistoryBegun(_) => EventType::HistoryBegun,
        Change::UserCreated(_) => EventType::UserCreated,
        Change::UserImported(_) => EventType::UserImported,
        Change::UserUpdated(_) => EventType::UserUpdated,
        Change::UserDisabled(_) => EventType::UserDisabled,
        Change::UserEnabled(_) => EventType::UserEnabled,
        Change::UserDeleted(_) => EventType::UserDeleted,
        Change::UserRestored(_) => EventType::UserRestored,
        Change::UserMerged(_) => EventType::UserMerged,
        Change::UserUnmerged(_) => EventType::UserUnmerged,
        Change::IdentityLinked(_) => EventType::IdentityLinked,
        Change::IdentityUnlinked(_) => EventType::IdentityUnlinked,
        Change::IdentityReplaced(_) => EventType::IdentityReplaced,
        Change::IdentityMoved(_) => EventType::IdentityMoved,
        Change::IdentityVerified(_) => EventType::IdentityVerified,
        Change::IdentityTakenOver(_) => EventType::IdentityTakenOver,
        Change::IdentityRenormalized(_) => EventType::IdentityRenormalized,
        Change::HoldReleased(_) => EventType::HoldReleased,
    }
}
