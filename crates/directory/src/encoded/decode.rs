//! Converts stored messages to users.

use locality_uuid::LocalityId;
use prost_types::Timestamp as ProtoTimestamp;

use crate::encoded::error::WireError;
use crate::model::attribute::Value;
use crate::model::tenant::Tenant;
use crate::model::unknown::Unknown;
use crate::model::user::{Identity, State, User, Verification};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, Kind, Rules};
use polynym_proto::v1;
use polynym_proto::v1::{attribute_value, identifier};

/// The user of a message, which has no versions of rules: see [`Rules::UNNAMED`].
pub fn read_user(message: v1::User) -> Result<User, WireError> {
    let state = read_state(&message)?;
    let value = |(name, message)| Some((name, read_value(message)?));
    let attributes = message.attributes.into_iter().map(value).collect::<Option<_>>();
    Ok(User {
        id: read_id(&message.user_id)?,
        tenant: read_tenant(&message.tenant)?,
        display_name: message.display_name,
        identities: message.identities.into_iter().map(read_identity).collect::<Result<_, _>>()?,
        attributes: attributes
            .ok_or_else(|| WireError("an attribute without a value".to_owned()))?,
        state,
        create_time: read_time(message.create_time),
        update_time: read_time(message.update_time),
        unknown: Unknown::default(),
    })
}

pub fn read_tenant(name: &str) -> Result<Tenant, WireError> {
    Tenant::parse(name).map_err(|error| WireError(error.to_string()))
}

fn read_state(message: &v1::User) -> Result<State, WireError> {
    let times = (message.delete_time, message.purge_time);
    read_state_of(message.state(), times, &message.merged_into)
}

/// The state with the times of a deletion, or the user of a merge.
pub fn read_state_of(
    state: v1::State,
    (delete_time, purge_time): (Option<ProtoTimestamp>, Option<ProtoTimestamp>),
    merged_into: &str,
) -> Result<State, WireError> {
    Ok(match state {
        v1::State::Unspecified => return Err(WireError("a user without a state".to_owned())),
        v1::State::Active => State::Active,
        v1::State::Disabled => State::Disabled,
        v1::State::Deleted => State::Deleted {
            delete_time: read_time(delete_time),
            purge_time: read_time(purge_time),
        },
        v1::State::Merged => State::Merged { into: read_id(merged_into)? },
    })
}

/// An id; none if the text is empty.
pub fn read_optional_id(text: &str) -> Result<Option<LocalityId>, WireError> {
    Some(text).filter(|text| !text.is_empty()).map(read_id).transpose()
}

pub fn read_id(text: &str) -> Result<LocalityId, WireError> {
    text.parse().map_err(|_| WireError("a malformed id".to_owned()))
}

pub fn read_identity(message: v1::Identity) -> Result<Identity, WireError> {
    let by = message.verified_by;
    let verification =
        message.verify_time.map(|time| Verification { time: read_time(Some(time)), by });
    Ok(Identity {
        identifier: read_identifier_message(message.identifier)?,
        display: message.display,
        rules_version: Rules::UNNAMED,
        link_time: read_time(message.link_time),
        import_time: message.import_time.map(|time| read_time(Some(time))),
        verification,
        primary: message.primary,
        unknown: Unknown::default(),
    })
}

/// The identifier of a message in canonical form.
pub fn read_identifier_message(message: Option<v1::Identifier>) -> Result<Identifier, WireError> {
    let kind = message.and_then(|message| message.kind);
    kind.map(read_identifier)
        .ok_or_else(|| WireError("an identity without an identifier".to_owned()))
}

fn read_identifier(kind: identifier::Kind) -> Identifier {
    let (kind, canonical) = match kind {
        identifier::Kind::Email(value) => (Kind::Email, value),
        identifier::Kind::Handle(value) => (Kind::Handle, value),
        identifier::Kind::Phone(phone) => (Kind::Phone, phone.number),
        identifier::Kind::Social(social) => {
            return Identifier::of_account(&social.provider, &social.subject);
        }
        identifier::Kind::Url(value) => (Kind::Url, value),
    };
    Identifier::from_canonical(kind, canonical)
}

pub fn read_value(message: v1::AttributeValue) -> Option<Value> {
    use attribute_value::Kind;
    Some(match message.kind? {
        Kind::StringValue(text) => Value::String(text),
        Kind::IntValue(number) => Value::Int(number),
        Kind::DoubleValue(number) => Value::Double(number),
        Kind::BoolValue(value) => Value::Bool(value),
        Kind::TimeValue(time) => Value::Time(read_time(Some(time))),
        Kind::ListValue(list) => Value::List(list.values),
    })
}

pub fn read_time(message: Option<ProtoTimestamp>) -> Timestamp {
    let ProtoTimestamp { seconds, nanos } = message.unwrap_or_default();
    Timestamp::from_millis(seconds * 1_000 + i64::from(nanos) / 1_000_000)
}
