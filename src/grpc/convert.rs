//! Between the API's messages and the directory's types.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::Timestamp as ProtoTimestamp;

use crate::directory::{
    Consistency, Error, Found, Identity, Invalid, RawIdentity, Timestamp, User, Value, Verification,
};
use crate::identifier::{Change, Identifier, IdentityKey, Kind, Normalization, RULES_VERSION, RawIdentifier};
use crate::proto::v1::{self, attribute_value, identifier, normalize_identity_response};

/// The identifier of a request, if it has one.
pub fn raw(message: Option<&v1::Identifier>) -> Option<RawIdentifier<'_>> {
    Some(match message?.kind.as_ref()? {
        identifier::Kind::Email(email) => RawIdentifier::Email(email),
        identifier::Kind::Handle(handle) => RawIdentifier::Handle(handle),
        identifier::Kind::Phone(phone) => RawIdentifier::Phone { number: &phone.number, region: &phone.region },
        identifier::Kind::Social(v1::Social { provider, subject }) => RawIdentifier::Social { provider, subject },
        identifier::Kind::Url(url) => RawIdentifier::Url(url),
    })
}

/// The identities of a user who is to be created.
pub fn raw_identities(messages: &[v1::Identity]) -> Result<Vec<RawIdentity<'_>>, Error> {
    messages.iter().enumerate().map(|(n, message)| raw_identity(n, message)).collect()
}

fn raw_identity(n: usize, message: &v1::Identity) -> Result<RawIdentity<'_>, Error> {
    let field = |name| format!("user.identities[{n}].{name}");
    let time = message.verify_time.as_ref().map(|time| timestamp(&field("verify_time"), time)).transpose()?;
    if time.is_none() && !message.verified_by.is_empty() {
        return Err(Error::invalid(Invalid::Field, field("verified_by"), "needs a verify_time"));
    }
    Ok(RawIdentity {
        identifier: raw(message.identifier.as_ref()),
        verification: time.map(|time| Verification { time, by: message.verified_by.clone() }),
        primary: message.primary,
    })
}

/// The attributes of a request.
pub fn attributes(messages: &BTreeMap<String, v1::AttributeValue>) -> Result<BTreeMap<String, Value>, Error> {
    let convert = |(n, (name, message)): (usize, (&String, _))| Ok((name.clone(), value(n, message)?));
    messages.iter().enumerate().map(convert).collect()
}

/// The value of the attribute that is the `n`th by name: names are not checked yet, and so not repeated to a caller.
fn value(n: usize, message: &v1::AttributeValue) -> Result<Value, Error> {
    use attribute_value::Kind;
    let field = || format!("user.attributes (name {n} in order)");
    let missing = || Error::invalid(Invalid::Attribute, field(), "an attribute has no value");
    Ok(match message.kind.as_ref().ok_or_else(missing)? {
        Kind::StringValue(text) => Value::String(text.clone()),
        Kind::IntValue(number) => Value::Int(*number),
        Kind::DoubleValue(number) => Value::Double(*number),
        Kind::BoolValue(yes) => Value::Bool(*yes),
        Kind::TimeValue(time) => Value::Time(timestamp(&field(), time)?),
        Kind::ListValue(list) => Value::List(list.values.clone()),
    })
}

fn timestamp(field: &str, message: &ProtoTimestamp) -> Result<Timestamp, Error> {
    let millis = message.seconds.checked_mul(1_000).and_then(|ms| ms.checked_add(i64::from(message.nanos) / 1_000_000));
    let time = millis.map(Timestamp::from_millis).filter(|_| (0..1_000_000_000).contains(&message.nanos));
    time.filter(|time| (Timestamp::MIN..=Timestamp::MAX).contains(time)).ok_or_else(|| {
        Error::invalid(Invalid::Field, field, "a time lies in the years 1 to 9999, with nanos below 10^9")
    })
}

/// By whom an identity shall be said to be verified, or that it is not.
pub fn verified_by(verified: bool, by: &str) -> Result<Option<String>, Error> {
    if !verified && !by.is_empty() {
        return Err(Error::invalid(Invalid::Field, "verified_by", "must be empty where verified is false"));
    }
    Ok(verified.then(|| by.to_owned()))
}

/// How fresh an answer must be; `max_staleness` is checked alone, since nothing is cached that could be stale.
pub fn consistency(number: i32, max_staleness: Option<&prost_types::Duration>) -> Result<Consistency, Error> {
    if max_staleness.is_some_and(|age| age.seconds < 0 || age.nanos < 0) {
        return Err(Error::invalid(Invalid::Field, "max_staleness", "must not be negative"));
    }
    match v1::Consistency::try_from(number) {
        Ok(v1::Consistency::Unspecified | v1::Consistency::Latest) => Ok(Consistency::Latest),
        Ok(v1::Consistency::Linearizable) => Ok(Consistency::Linearizable),
        Ok(v1::Consistency::Eventual) => Ok(Consistency::Eventual),
        Err(_) => Err(Error::invalid(Invalid::Field, "consistency", "is none of the known consistencies")),
    }
}

/// A found user and the identity that was asked for, as messages.
pub fn found(found: Found) -> (v1::User, v1::Identity) {
    let position = found.position;
    let user = user(found.user);
    let identity = user.identities[position].clone();
    (user, identity)
}

/// A user as a message.
pub fn user(user: User) -> v1::User {
    v1::User {
        etag: user.etag(),
        user_id: user.id.to_string(),
        tenant: user.tenant.as_str().to_owned(),
        state: v1::State::Active.into(),
        display_name: user.display_name,
        identities: user.identities.into_iter().map(identity).collect(),
        attributes: user.attributes.into_iter().map(|(name, value)| (name, value_message(value))).collect(),
        create_time: Some(time_message(user.create_time)),
        update_time: Some(time_message(user.update_time)),
        delete_time: None,
        purge_time: None,
        merged_into: String::new(),
    }
}

fn identity(identity: Identity) -> v1::Identity {
    let (verify_time, verified_by) = match identity.verification {
        Some(Verification { time, by }) => (Some(time_message(time)), by),
        None => (None, String::new()),
    };
    v1::Identity {
        identifier: Some(identifier(&identity.identifier)),
        display: identity.display,
        link_time: Some(time_message(identity.link_time)),
        verify_time,
        verified_by,
        primary: identity.primary,
    }
}

/// An identifier in canonical form, as a message.
pub fn identifier(identifier: &Identifier) -> v1::Identifier {
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
    v1::Social { provider: provider.to_owned(), subject: subject.to_owned() }
}

fn value_message(value: Value) -> v1::AttributeValue {
    use attribute_value::Kind;
    let kind = match value {
        Value::String(text) => Kind::StringValue(text),
        Value::Int(number) => Kind::IntValue(number),
        Value::Double(number) => Kind::DoubleValue(number),
        Value::Bool(yes) => Kind::BoolValue(yes),
        Value::Time(time) => Kind::TimeValue(time_message(time)),
        Value::List(values) => Kind::ListValue(v1::StringList { values }),
    };
    v1::AttributeValue { kind: Some(kind) }
}

fn time_message(time: Timestamp) -> ProtoTimestamp {
    let millis = time.as_millis();
    ProtoTimestamp { seconds: millis.div_euclid(1_000), nanos: millis.rem_euclid(1_000) as i32 * 1_000_000 }
}

/// What a dry run found, as a message.
pub fn normalization(normalization: Normalization, key: IdentityKey) -> v1::NormalizeIdentityResponse {
    let change = |change: Change| normalize_identity_response::Change {
        rule: change.rule.to_owned(),
        before: change.before,
        after: change.after,
    };
    v1::NormalizeIdentityResponse {
        identifier: Some(identifier(&normalization.identifier)),
        key: key.into_string(),
        skeleton: normalization.guard.map(|guard| guard.skeleton().to_owned()).unwrap_or_default(),
        rules_version: RULES_VERSION,
        changes: normalization.changes.into_iter().map(change).collect(),
    }
}

/// A status as the message that stands in a batch's answer.
pub fn status(status: &tonic::Status) -> tonic_types::Status {
    let empty = || tonic_types::Status {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    tonic_types::Status::decode(status.details()).unwrap_or_else(|_| empty())
}
