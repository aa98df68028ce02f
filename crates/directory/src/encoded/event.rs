//! The encoded forms of events, in stores and in the API's messages.

use locality_uuid::LocalityId;
use prost::Message;

use crate::encoded::decode::{
    read_identifier_message, read_identity, read_optional_id, read_state_of, read_time, read_value,
};
use crate::encoded::encode::{identifier_message, identity_message, time_message, value_message};
use crate::encoded::error::WireError;
use crate::model::event::{
    ChangeSet, Event, EventKind, FieldChange, HoldChange, IdentityChange, Origin, RecordedValue,
    event_kinds,
};
use crate::model::ownership::{EndedOwnerships, Ownership};
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, IdentityKey};
use polynym_proto::v1;
use polynym_proto::v1::EventType;
use polynym_proto::v1::event::Change;
use polynym_proto::v1::recorded_value::Recorded;

/// An event as the API's message.
pub fn event_message(event: &Event) -> v1::Event {
    v1::Event {
        event_id: format!("{}:{}", event.user, event.sequence),
        tenant: event.tenant.as_str().to_owned(),
        user_id: event.user.to_string(),
        ..message(event, event.kind)
    }
}

/// The stored form of an event, without its user and tenant: it is stored with the user.
pub fn encode_event(event: &Event) -> Vec<u8> {
    message(event, event.kind.stored()).encode_to_vec()
}

/// Decodes the output of [`encode_event`].
pub fn decode_event(tenant: &Tenant, user: LocalityId, bytes: &[u8]) -> Result<Event, WireError> {
    let message = v1::Event::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    let change = message.change.ok_or_else(|| error("an event without a change"))?;
    let (kind, changes) = kind_of(change);
    let changes = read_changes(tenant, changes)?;
    let origin = Origin {
        caller: message.caller,
        method: message.method,
        request_id: read_optional_id(&message.request_id)?,
        reason: message.reason,
        operation_id: message.operation_id,
    };
    Ok(Event {
        tenant: tenant.clone(),
        user,
        sequence: message.sequence.try_into().map_err(|_| error("a negative sequence number"))?,
        time: read_time(message.time),
        // Former versions stored it with the origin of the next event.
        origin: if kind == EventKind::HistoryBegun { Origin::default() } else { origin },
        kind: kind.of_stored(&changes),
        changes,
    })
}

/// The sequence number of an encoded event.
pub fn sequence_of(bytes: &[u8]) -> Result<u64, WireError> {
    let message = v1::Event::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    message.sequence.try_into().map_err(|_| error("a negative sequence number"))
}

/// The time of an encoded event.
///
/// # Errors
/// [`WireError`] if the bytes are not an event.
pub fn time_of(bytes: &[u8]) -> Result<Timestamp, WireError> {
    let message = v1::Event::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    Ok(read_time(message.time))
}

fn error(what: &str) -> WireError {
    WireError(what.to_owned())
}

fn message(event: &Event, kind: EventKind) -> v1::Event {
    let Origin { caller, method, request_id, reason, operation_id } = &event.origin;
    v1::Event {
        time: Some(time_message(event.time)),
        sequence: event.sequence as i64,
        caller: caller.clone(),
        method: method.clone(),
        request_id: request_id.map(|id| id.to_string()).unwrap_or_default(),
        reason: reason.clone(),
        operation_id: operation_id.clone(),
        change: Some(change_of(kind, changes_message(&event.changes))),
        ..v1::Event::default()
    }
}

/// Maps the kinds of events to the API's types and messages, which have the same names.
macro_rules! api_kinds {
    ($($(#[$doc:meta])* $kind:ident)*) => {
        /// The kind of events with this type in the API.
        pub fn read_event_type(message: EventType) -> Option<EventKind> {
            match message {
                EventType::Unspecified => None,
                $(EventType::$kind => Some(EventKind::$kind),)*
            }
        }

        /// The type of events of this kind in the API.
        pub const fn event_type(kind: EventKind) -> EventType {
            match kind {
                $(EventKind::$kind => EventType::$kind,)*
            }
        }

        const fn change_of(kind: EventKind, changes: v1::ChangeSet) -> Change {
            match kind {
                $(EventKind::$kind => Change::$kind(changes),)*
            }
        }

        fn kind_of(change: Change) -> (EventKind, v1::ChangeSet) {
            match change {
                $(Change::$kind(changes) => (EventKind::$kind, changes),)*
            }
        }
    };
}
event_kinds!(api_kinds);

/// The differences of an event as a message.
pub fn changes_message(changes: &ChangeSet) -> v1::ChangeSet {
    let field = |change: &FieldChange| v1::FieldChange {
        path: change.path.clone(),
        before: change.before.as_ref().map(recorded_message),
        after: change.after.as_ref().map(recorded_message),
    };
    let identity = |change: &IdentityChange| v1::IdentityChange {
        before: change.before.as_ref().map(identity_message),
        after: change.after.as_ref().map(identity_message),
    };
    let state = |(before, after): (Option<State>, State)| v1::StateChange {
        before: before.map(state_message),
        after: Some(state_message(after)),
    };
    v1::ChangeSet {
        fields: changes.fields.iter().map(field).collect(),
        identities: changes.identities.iter().map(identity).collect(),
        state: changes.state.map(state),
        holds: changes.holds.iter().filter_map(hold_message).collect(),
        other_user_id: changes.other_user.map(|id| id.to_string()).unwrap_or_default(),
        redacted: changes.is_redacted,
    }
}

/// The encoded form of a value of an event. Equal values have equal forms.
pub fn encode_recorded(value: &RecordedValue) -> Vec<u8> {
    recorded_message(value).encode_to_vec()
}

fn recorded_message(value: &RecordedValue) -> v1::RecordedValue {
    let recorded = match value {
        RecordedValue::Whole(value) => Recorded::Value(value_message(value)),
        RecordedValue::Digest(size, hash) => {
            Recorded::Digest(v1::ValueDigest { size_bytes: *size as i64, hash: *hash })
        }
        RecordedValue::Redacted => Recorded::Redacted(true),
    };
    v1::RecordedValue { recorded: Some(recorded) }
}

fn state_message(state: State) -> v1::UserState {
    let message = |state: v1::State| v1::UserState { state: state.into(), ..Default::default() };
    match state {
        State::Active => message(v1::State::Active),
        State::Disabled => message(v1::State::Disabled),
        State::Deleted { delete_time, purge_time } => v1::UserState {
            delete_time: Some(time_message(delete_time)),
            purge_time: Some(time_message(purge_time)),
            ..message(v1::State::Deleted)
        },
        State::Merged { into } => {
            v1::UserState { merged_into: into.to_string(), ..message(v1::State::Merged) }
        }
    }
}

/// The message of a hold; none if the kind of its key is unknown.
fn hold_message(change: &HoldChange) -> Option<v1::HoldChange> {
    let (_, word, value) = change.key.parts();
    let identifier = Identifier::from_canonical(word.parse().ok()?, value.to_owned());
    Some(v1::HoldChange {
        identifier: Some(identifier_message(&identifier)),
        end_before: change.before.map(time_message),
        end_after: change.after.map(time_message),
    })
}

fn read_changes(tenant: &Tenant, message: v1::ChangeSet) -> Result<ChangeSet, WireError> {
    let recorded = |value: Option<v1::RecordedValue>| value.map(read_recorded).transpose();
    let field = |change: v1::FieldChange| {
        let (before, after) = (recorded(change.before)?, recorded(change.after)?);
        Ok(FieldChange { path: change.path, before, after })
    };
    let identity = |change: v1::IdentityChange| {
        let read = |one: Option<v1::Identity>| one.map(read_identity).transpose();
        Ok(IdentityChange { before: read(change.before)?, after: read(change.after)? })
    };
    let hold = |change: v1::HoldChange| {
        let identifier = read_identifier_message(change.identifier)?;
        let key = IdentityKey::new(tenant.as_str(), &identifier);
        let time = |time: Option<_>| time.map(|time| read_time(Some(time)));
        Ok(HoldChange { key, before: time(change.end_before), after: time(change.end_after) })
    };
    let other_user = read_optional_id(&message.other_user_id)?;
    let fields: Result<_, WireError> = message.fields.into_iter().map(field).collect();
    let identities: Result<_, WireError> = message.identities.into_iter().map(identity).collect();
    let holds: Result<_, WireError> = message.holds.into_iter().map(hold).collect();
    Ok(ChangeSet {
        fields: fields?,
        identities: identities?,
        state: message.state.map(read_state_change).transpose()?,
        holds: holds?,
        other_user,
        is_redacted: message.redacted,
    })
}

fn read_recorded(message: v1::RecordedValue) -> Result<RecordedValue, WireError> {
    let missing = || error("an event without a value");
    Ok(match message.recorded.ok_or_else(missing)? {
        Recorded::Value(value) => RecordedValue::Whole(read_value(value).ok_or_else(missing)?),
        Recorded::Digest(digest) => {
            RecordedValue::Digest(digest.size_bytes.try_into().unwrap_or_default(), digest.hash)
        }
        Recorded::Redacted(_) => RecordedValue::Redacted,
    })
}

fn read_state_change(message: v1::StateChange) -> Result<(Option<State>, State), WireError> {
    let read = |state: v1::UserState| {
        let times = (state.delete_time, state.purge_time);
        read_state_of(state.state(), times, &state.merged_into)
    };
    let after = message.after.ok_or_else(|| error("a change without a state"))?;
    Ok((message.before.map(read).transpose()?, read(after)?))
}

#[derive(Clone, PartialEq, Message)]
struct EndedRecord {
    #[prost(message, repeated, tag = "1")]
    ended: Vec<OwnershipRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct OwnershipRecord {
    /// Absent if the user was purged.
    #[prost(bytes = "vec", tag = "1")]
    user: Vec<u8>,
    #[prost(int64, tag = "2")]
    begin: i64,
    #[prost(int64, tag = "3")]
    end: i64,
    #[prost(message, optional, tag = "4")]
    identity: Option<v1::Identity>,
}

/// The stored form of the ended ownerships of an identifier.
pub fn encode_ended(ended: &EndedOwnerships) -> Vec<u8> {
    EndedRecord { ended: ended.0.iter().map(ownership_record).collect() }.encode_to_vec()
}

/// Decodes the output of [`encode_ended`].
pub fn decode_ended(bytes: &[u8]) -> Result<EndedOwnerships, WireError> {
    let record = EndedRecord::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    record.ended.into_iter().map(read_ownership).collect::<Result<_, _>>().map(EndedOwnerships)
}

/// The stored form of one ownership.
pub fn encode_ownership(ownership: &Ownership) -> Vec<u8> {
    ownership_record(ownership).encode_to_vec()
}

/// Decodes the output of [`encode_ownership`].
pub fn decode_ownership(bytes: &[u8]) -> Result<Ownership, WireError> {
    let record = OwnershipRecord::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    read_ownership(record)
}

fn ownership_record(ownership: &Ownership) -> OwnershipRecord {
    OwnershipRecord {
        user: ownership.user.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        begin: ownership.begin.as_millis(),
        end: ownership.end.as_millis(),
        identity: ownership.identity.as_ref().map(identity_message),
    }
}

fn read_ownership(record: OwnershipRecord) -> Result<Ownership, WireError> {
    let id: Result<[u8; 16], _> = record.user.as_slice().try_into();
    Ok(Ownership {
        user: id.ok().map(LocalityId::from),
        begin: Timestamp::from_millis(record.begin),
        end: Timestamp::from_millis(record.end),
        identity: record.identity.map(read_identity).transpose()?,
    })
}
