//! Tables and records of the embedded store. Records are protocol buffers: a field that a later version adds reads as
//! absent in what an earlier one wrote.

use bytes::Bytes;
use prost::Message;
use redb::TableDefinition;

use super::error::Fault;
use crate::directory::{User, WireUser, wire_fields};
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

/// A user as it is stored under its id.
#[derive(Clone, PartialEq, Message)]
struct UserRecord {
    /// The user in wire form, so that a read copies bytes.
    #[prost(bytes = "bytes", tag = "1")]
    user: Bytes,
    /// For each identity, in order, the version of the rules that made its canonical form.
    #[prost(uint32, repeated, tag = "2")]
    rules_versions: Vec<u32>,
}

/// The record of a user.
pub fn encode_user(user: &User) -> Vec<u8> {
    let rules_versions = user.identities.iter().map(|identity| identity.rules_version).collect();
    UserRecord { user: WireUser::of(user).into_bytes(), rules_versions }.encode_to_vec()
}

/// The user of a record in wire form.
pub fn wire_user(record: &[u8]) -> WireUser {
    WireUser::from_stored(Bytes::copy_from_slice(wire_fields::first(record, 1)))
}

/// The user of a record.
pub fn decode_user(record: &[u8]) -> Result<User, Fault> {
    let record = UserRecord::decode(record).map_err(Fault::damaged)?;
    let mut user = WireUser::from_stored(record.user).decode().map_err(Fault::damaged)?;
    for (identity, version) in user.identities.iter_mut().zip(record.rules_versions) {
        identity.rules_version = version;
    }
    Ok(user)
}
