//! The part of a user's record that answers do not show. Every field is absent in most records, and a record whose
//! fields are all absent has no bytes at all.

use prost::Message;

use super::super::{Identity, Record};
use super::WireError;
use crate::identifier::RULES_VERSION;

#[derive(Clone, PartialEq, Message)]
struct PrivateRecord {
    /// For each identity, in order, the version of the rules that made its canonical form. None where all are of the
    /// present version.
    #[prost(uint32, repeated, tag = "1")]
    rules_versions: Vec<u32>,
}

/// Encodes what [`decode_private`] reads.
pub fn encode_private(record: &Record) -> Vec<u8> {
    let identities = &record.user.identities;
    let is_old = |identity: &Identity| identity.rules_version != RULES_VERSION;
    let versions = identities.iter().filter(|_| identities.iter().any(is_old));
    PrivateRecord { rules_versions: versions.map(|identity| identity.rules_version).collect() }.encode_to_vec()
}

/// Adds to a record what [`encode_private`] made of it.
pub fn decode_private(bytes: &[u8], record: &mut Record) -> Result<(), WireError> {
    let private = PrivateRecord::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    for (identity, version) in record.user.identities.iter_mut().zip(private.rules_versions) {
        identity.rules_version = version;
    }
    Ok(())
}
