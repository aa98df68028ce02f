//! Tables and records of the embedded store. Records are protocol buffers: a field that a later version adds reads as
//! absent in what an earlier one wrote.

use std::collections::BTreeMap;

use prost::{Message, Oneof};
use redb::TableDefinition;

use super::error::Fault;
use crate::directory::{Identity, Tenant, Timestamp, User, Value, Verification};
use crate::identifier::{Identifier, Kind};
use crate::locality::LocalityId;

/// The version of what this module describes. A store with another one is not opened.
pub const VERSION: u64 = 1;

/// What the store says of itself: `schema` has [`VERSION`].
pub const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// User id to [`UserRecord`].
pub const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
/// Identity key to [`Claim`]: unique, being the key. As bytes, which order like text and need no check on every step.
pub const IDENTITIES: TableDefinition<'_, &[u8], &[u8; Claim::BYTES]> = TableDefinition::new("identities");
/// Request key to [`RequestRecord`].
pub const REQUESTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("requests");
/// Time of a request, in milliseconds, and its key: what to forget first.
pub const REQUEST_TIMES: TableDefinition<'_, (i64, &str), ()> = TableDefinition::new("request_times");

/// Gives an identity key to one user: 16 bytes of user id, then the version of the rules that made the key, big-endian.
pub struct Claim;

impl Claim {
    pub const BYTES: usize = 18;

    pub fn encode(owner: LocalityId, rules_version: u32) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(owner.as_bytes());
        bytes[16..].copy_from_slice(&(rules_version as u16).to_be_bytes());
        bytes
    }

    pub fn owner(bytes: &[u8; Self::BYTES]) -> LocalityId {
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[..16]);
        LocalityId::from(id)
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct RequestRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub user_id: Vec<u8>,
    #[prost(fixed64, tag = "2")]
    pub fingerprint: u64,
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "3")]
    pub time: i64,
}

#[derive(Clone, PartialEq, Message)]
struct UserRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    display_name: String,
    #[prost(message, repeated, tag = "3")]
    identities: Vec<IdentityRecord>,
    #[prost(btree_map = "string, message", tag = "4")]
    attributes: BTreeMap<String, ValueRecord>,
    #[prost(int64, tag = "5")]
    create_time: i64,
    #[prost(int64, tag = "6")]
    update_time: i64,
}

#[derive(Clone, PartialEq, Message)]
struct IdentityRecord {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    canonical: String,
    /// Empty where it is the canonical form.
    #[prost(string, tag = "3")]
    display: String,
    #[prost(uint32, tag = "4")]
    rules_version: u32,
    #[prost(int64, tag = "5")]
    link_time: i64,
    #[prost(int64, optional, tag = "6")]
    verify_time: Option<i64>,
    #[prost(string, tag = "7")]
    verified_by: String,
    #[prost(bool, tag = "8")]
    primary: bool,
}

#[derive(Clone, PartialEq, Message)]
struct ValueRecord {
    #[prost(oneof = "ValueKind", tags = "1, 2, 3, 4, 5, 6")]
    value: Option<ValueKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ValueKind {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(sint64, tag = "2")]
    Int(i64),
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(int64, tag = "5")]
    Time(i64),
    #[prost(message, tag = "6")]
    List(ListRecord),
}

#[derive(Clone, PartialEq, Message)]
struct ListRecord {
    #[prost(string, repeated, tag = "1")]
    items: Vec<String>,
}

/// A user as it is stored under its id.
pub fn encode_user(user: &User) -> Vec<u8> {
    let value = |(name, value): (&String, &Value)| (name.clone(), ValueRecord { value: Some(value_record(value)) });
    let record = UserRecord {
        tenant: user.tenant.as_str().to_owned(),
        display_name: user.display_name.clone(),
        identities: user.identities.iter().map(identity_record).collect(),
        attributes: user.attributes.iter().map(value).collect(),
        create_time: user.create_time.as_millis(),
        update_time: user.update_time.as_millis(),
    };
    record.encode_to_vec()
}

/// Reads what [`encode_user`] wrote.
pub fn decode_user(id: LocalityId, bytes: &[u8]) -> Result<User, Fault> {
    let record = UserRecord::decode(bytes).map_err(Fault::damaged)?;
    let value = |(name, value): (String, ValueRecord)| Ok((name, read_value(value)?));
    Ok(User {
        id,
        tenant: Tenant::parse(&record.tenant).map_err(Fault::damaged)?,
        display_name: record.display_name,
        identities: record.identities.into_iter().map(read_identity).collect::<Result<_, _>>()?,
        attributes: record.attributes.into_iter().map(value).collect::<Result<_, Fault>>()?,
        create_time: Timestamp::from_millis(record.create_time),
        update_time: Timestamp::from_millis(record.update_time),
    })
}

fn identity_record(identity: &Identity) -> IdentityRecord {
    let canonical = identity.identifier.canonical();
    let verification = identity.verification.as_ref();
    IdentityRecord {
        kind: identity.identifier.kind().as_str().to_owned(),
        canonical: canonical.to_owned(),
        display: if identity.display == canonical { String::new() } else { identity.display.clone() },
        rules_version: identity.rules_version,
        link_time: identity.link_time.as_millis(),
        verify_time: verification.map(|v| v.time.as_millis()),
        verified_by: verification.map(|v| v.by.clone()).unwrap_or_default(),
        primary: identity.primary,
    }
}

fn read_identity(record: IdentityRecord) -> Result<Identity, Fault> {
    let kind: Kind = record.kind.parse().map_err(|_| Fault::damaged("an identity of no known kind"))?;
    let by = record.verified_by;
    let verification = |time| Verification { time: Timestamp::from_millis(time), by };
    Ok(Identity {
        display: if record.display.is_empty() { record.canonical.clone() } else { record.display },
        identifier: Identifier::from_canonical(kind, record.canonical),
        rules_version: record.rules_version,
        link_time: Timestamp::from_millis(record.link_time),
        verification: record.verify_time.map(verification),
        primary: record.primary,
    })
}

fn value_record(value: &Value) -> ValueKind {
    match value {
        Value::String(text) => ValueKind::String(text.clone()),
        Value::Int(number) => ValueKind::Int(*number),
        Value::Double(number) => ValueKind::Double(*number),
        Value::Bool(yes) => ValueKind::Bool(*yes),
        Value::Time(time) => ValueKind::Time(time.as_millis()),
        Value::List(items) => ValueKind::List(ListRecord { items: items.clone() }),
    }
}

fn read_value(record: ValueRecord) -> Result<Value, Fault> {
    Ok(match record.value.ok_or_else(|| Fault::damaged("an attribute without a value"))? {
        ValueKind::String(text) => Value::String(text),
        ValueKind::Int(number) => Value::Int(number),
        ValueKind::Double(number) => Value::Double(number),
        ValueKind::Bool(yes) => Value::Bool(yes),
        ValueKind::Time(millis) => Value::Time(Timestamp::from_millis(millis)),
        ValueKind::List(list) => Value::List(list.items),
    })
}
