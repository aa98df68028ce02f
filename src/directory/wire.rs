//! A user in the form in which the API's answers carry it. It is encoded once, when the user is written, and passed on
//! untouched whenever the user is read: look-ups build no user, and the services copy bytes.

use bytes::Bytes;
use prost::Message;
use prost_types::Timestamp as ProtoTimestamp;

use super::wire_fields::{self, Field};
use super::{Identity, Tenant, Timestamp, User, Value, Verification};
use crate::identifier::{Identifier, IdentityKey, Kind, RULES_VERSION};
use crate::proto::v1::{self, attribute_value, identifier};

mod private;

pub use private::{decode_private, encode_private};

/// An encoded `polynym.v1.User`.
#[derive(Clone, PartialEq, Eq)]
pub struct WireUser(Bytes);

/// A user, found by one of its identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The user.
    pub user: WireUser,
    /// The identity that was asked for: an encoded `polynym.v1.Identity`.
    pub identity: Bytes,
}

/// Why an encoded user cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("not an encoded user: {0}")]
pub struct WireError(String);

impl Found {
    /// The user with the identity that `key` stands for, if it lists that.
    pub fn new(user: WireUser, key: &IdentityKey) -> Option<Self> {
        let identity = user.identity(key)?;
        Some(Self { user, identity })
    }
}

impl WireUser {
    /// Encodes a user.
    pub fn of(user: &User) -> Self {
        Self(user_message(user).encode_to_vec().into())
    }

    /// Wraps what [`WireUser::of`] made and a store kept.
    pub const fn from_stored(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The encoded bytes.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The encoded bytes, taken out.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The name of the user's tenant.
    pub fn tenant(&self) -> &[u8] {
        wire_fields::first(&self.0, v1_tag::USER_TENANT)
    }

    /// The user. The rules' versions are no part of the wire form: each identity gets the present one.
    ///
    /// # Errors
    /// [`WireError`] where the bytes were not made by [`WireUser::of`].
    pub fn decode(&self) -> Result<User, WireError> {
        let fault = |error: &dyn ToString| WireError(error.to_string());
        let message = v1::User::decode(self.0.clone()).map_err(|error| fault(&error))?;
        let value = |(name, message)| Some((name, read_value(message)?));
        let attributes = message.attributes.into_iter().map(value).collect::<Option<_>>();
        Ok(User {
            id: message.user_id.parse().map_err(|error| fault(&error))?,
            tenant: Tenant::parse(&message.tenant).map_err(|error| fault(&error))?,
            display_name: message.display_name,
            identities: message.identities.into_iter().map(read_identity).collect::<Result<_, _>>()?,
            attributes: attributes.ok_or_else(|| fault(&"an attribute without a value"))?,
            create_time: read_time(message.create_time),
            update_time: read_time(message.update_time),
        })
    }

    /// The encoded identity that `key` stands for.
    fn identity(&self, key: &IdentityKey) -> Option<Bytes> {
        let (tenant, kind, value) = key.parts();
        let is = |field: &Field<'_>| field.tag == v1_tag::USER_IDENTITIES && is_identity(field.bytes, kind, value);
        let field = wire_fields::fields(&self.0).find(is).filter(|_| self.tenant() == tenant.as_bytes())?;
        Some(self.0.slice_ref(field.bytes))
    }
}

/// Shows the length alone: a user is personal data.
impl std::fmt::Debug for WireUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WireUser({} bytes)", self.0.len())
    }
}

/// The numbers of the fields that are read without decoding the message (`proto/polynym/v1/types.proto`).
mod v1_tag {
    pub const USER_TENANT: u32 = 2;
    pub const USER_IDENTITIES: u32 = 5;
    pub const IDENTITY_IDENTIFIER: u32 = 1;
    pub const PHONE_NUMBER: u32 = 1;
    pub const SOCIAL_PROVIDER: u32 = 1;
    pub const SOCIAL_SUBJECT: u32 = 2;
}

/// The number of the field that an identifier of this kind has.
fn kind_tag(kind: &str) -> u32 {
    match kind {
        "email" => 1,
        "handle" => 2,
        "phone" => 3,
        "social" => 4,
        "url" => 5,
        _ => 0,
    }
}

/// Whether an encoded identity has this identifier.
fn is_identity(identity: &[u8], kind: &str, value: &str) -> bool {
    let identifier = wire_fields::first(identity, v1_tag::IDENTITY_IDENTIFIER);
    let Some(field) = wire_fields::fields(identifier).find(|field| field.tag == kind_tag(kind)) else { return false };
    match kind {
        "phone" => wire_fields::first(field.bytes, v1_tag::PHONE_NUMBER) == value.as_bytes(),
        "social" => value.split_once('/').is_some_and(|(provider, subject)| {
            wire_fields::first(field.bytes, v1_tag::SOCIAL_PROVIDER) == provider.as_bytes()
                && wire_fields::first(field.bytes, v1_tag::SOCIAL_SUBJECT) == subject.as_bytes()
        }),
        _ => field.bytes == value.as_bytes(),
    }
}

/// A user as the API's message.
pub fn user_message(user: &User) -> v1::User {
    v1::User {
        etag: user.etag(),
        user_id: user.id.to_string(),
        tenant: user.tenant.as_str().to_owned(),
        state: v1::State::Active.into(),
        display_name: user.display_name.clone(),
        identities: user.identities.iter().map(identity).collect(),
        attributes: user.attributes.iter().map(|(name, value)| (name.clone(), value_message(value))).collect(),
        create_time: Some(time_message(user.create_time)),
        update_time: Some(time_message(user.update_time)),
        delete_time: None,
        purge_time: None,
        merged_into: String::new(),
    }
}

fn identity(identity: &Identity) -> v1::Identity {
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
    v1::Social { provider: provider.to_owned(), subject: subject.to_owned() }
}

fn value_message(value: &Value) -> v1::AttributeValue {
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

fn time_message(time: Timestamp) -> ProtoTimestamp {
    let millis = time.as_millis();
    ProtoTimestamp { seconds: millis.div_euclid(1_000), nanos: millis.rem_euclid(1_000) as i32 * 1_000_000 }
}

fn read_identity(message: v1::Identity) -> Result<Identity, WireError> {
    let by = message.verified_by;
    let verification = message.verify_time.map(|time| Verification { time: read_time(Some(time)), by });
    let identifier = message.identifier.and_then(|message| message.kind).map(read_identifier);
    Ok(Identity {
        identifier: identifier.ok_or_else(|| WireError("an identity without identifier".to_owned()))?,
        display: message.display,
        rules_version: RULES_VERSION,
        link_time: read_time(message.link_time),
        verification,
        primary: message.primary,
    })
}

fn read_identifier(kind: identifier::Kind) -> Identifier {
    let (kind, canonical) = match kind {
        identifier::Kind::Email(value) => (Kind::Email, value),
        identifier::Kind::Handle(value) => (Kind::Handle, value),
        identifier::Kind::Phone(phone) => (Kind::Phone, phone.number),
        identifier::Kind::Social(social) => (Kind::Social, format!("{}/{}", social.provider, social.subject)),
        identifier::Kind::Url(value) => (Kind::Url, value),
    };
    Identifier::from_canonical(kind, canonical)
}

fn read_value(message: v1::AttributeValue) -> Option<Value> {
    use attribute_value::Kind;
    Some(match message.kind? {
        Kind::StringValue(text) => Value::String(text),
        Kind::IntValue(number) => Value::Int(number),
        Kind::DoubleValue(number) => Value::Double(number),
        Kind::BoolValue(yes) => Value::Bool(yes),
        Kind::TimeValue(time) => Value::Time(read_time(Some(time))),
        Kind::ListValue(list) => Value::List(list.values),
    })
}

fn read_time(message: Option<ProtoTimestamp>) -> Timestamp {
    let ProtoTimestamp { seconds, nanos } = message.unwrap_or_default();
    Timestamp::from_millis(seconds * 1_000 + i64::from(nanos) / 1_000_000)
}
