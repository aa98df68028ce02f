//! Converts users to the API's messages.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::Timestamp as ProtoTimestamp;

use crate::encoded::v1_tag;
use crate::model::attribute::Value;
use crate::model::unknown::write_message;
use crate::model::user::{Identity, State, User, Verification};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, Kind};
use polynym_proto::v1;
use polynym_proto::v1::{attribute_value, identifier};

/// The stored form of a user: the API's message, with the unknown fields of newer programs.
pub fn encode_user(user: &User) -> Vec<u8> {
    encode_message(user_message(user), user)
}

/// The stored form of a user without attributes, which the etag still covers.
pub fn encode_without_attributes(user: &User) -> Vec<u8> {
    encode_message(message(user, BTreeMap::new()), user)
}

fn encode_message(mut message: v1::User, user: &User) -> Vec<u8> {
    let mut identities = Vec::new();
    if user.identities.iter().any(|identity| !identity.unknown.is_empty()) {
        message.identities.clear();
        identities.clone_from(&user.identities);
    }

    let mut bytes = message.encode_to_vec();
    for identity in &identities {
        let mut inner = identity_message(identity).encode_to_vec();
        identity.unknown.write(&mut inner);
        write_message(v1_tag::USER_IDENTITIES, &inner, &mut bytes);
    }
    user.unknown.write(&mut bytes);

    bytes
}

/// A user as the API's message.
pub fn user_message(user: &User) -> v1::User {
    let attribute = |(name, value): (&String, &Value)| (name.clone(), value_message(value));
    message(user, user.attributes.iter().map(attribute).collect())
}

fn message(user: &User, attributes: BTreeMap<String, v1::AttributeValue>) -> v1::User {
    let (state, delete_time, purge_time, merged_into) = match user.state {
        State::Active => (v1::State::Active, None, None, None),
        State::Disabled => (v1::State::Disabled, None, None, None),
        State::Deleted { delete_time, purge_time } => {
            (v1::State::Deleted, Some(delete_time), Some(purge_time), None)
        }
        State::Merged { into } => (v1::State::Merged, None, None, Some(into)),
    };

    v1::User {
        etag: user.etag(),
        user_id: user.id.to_string(),
        tenant: user.tenant.as_str().to_owned(),
        state: state.into(),
        display_name: user.display_name.clone(),
        identities: user.identities.iter().map(identity_message).collect(),
        attributes,
        create_time: Some(time_message(user.create_time)),
        update_time: Some(time_message(user.update_time)),
        delete_time: delete_time.map(time_message),
        purge_time: purge_time.map(time_message),
        merged_into: merged_into.map(|id| id.to_string()).unwrap_or_default(),
    }
}

/// An identity as the API's message.
pub fn identity_message(identity: &Identity) -> v1::Identity {
    let (verify_time, verified_by) = match &identity.verification {
        Some(Verification { time, by }) => (Some(time_message(*time)), by.clone()),
        None => (None, String::new()),
    };
    v1::Identity {
        identifier: Some(identifier_message(&identity.identifier)),
        display: identity.display.clone(),
        link_time: Some(time_message(identity.link_time)),
        verify_time,
        verified_by,
        primary: identity.primary,
        import_time: identity.import_time.map(time_message),
    }
}

/// An identifier in canonical form, as the API's message.
pub fn identifier_message(identifier: &Identifier) -> v1::Identifier {
    let value = identifier.canonical().to_owned();
    let kind = match identifier.kind() {
        Kind::Email => identifier::Kind::Email(value),
        Kind::Handle => identifier::Kind::Handle(value),
        Kind::Phone => identifier::Kind::Phone(v1::Phone { number: value, region: String::new() }),
        Kind::Social => identifier::Kind::Social(social(identifier)),
        Kind::Url => identifier::Kind::Url(value),
    };
    v1::Identifier { kind: Some(kind) }
}

fn social(identifier: &Identifier) -> v1::Social {
    let (provider, subject) = identifier.social_parts().unwrap_or_default();
    v1::Social { provider: provider.into_owned(), subject: subject.to_owned() }
}

/// The value of an attribute as the API's message.
pub fn value_message(value: &Value) -> v1::AttributeValue {
    use attribute_value::Kind;
    let kind = match value {
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Int(number) => Kind::IntValue(*number),
        Value::Double(number) => Kind::DoubleValue(*number),
        Value::Bool(yes) => Kind::BoolValue(*yes),
        Value::Time(time) => Kind::TimeValue(time_message(*time)),
        Value::List(values) => Kind::ListValue(v1::StringList { values: values.clone() }),
    };
    v1::AttributeValue { kind: Some(kind) }
}

/// An instant as the API's message.
pub fn time_message(time: Timestamp) -> ProtoTimestamp {
    time.into()
}
