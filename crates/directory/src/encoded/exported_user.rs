//! A user in an export: the encoded user of answers, and its internal part.

use bytes::Bytes;
use locality_uuid::LocalityId;
use prost::Message;

use crate::encoded::encoded_user::EncodedUser;
use crate::encoded::error::WireError;
use crate::encoded::internals::{internals_message, rules_message};
use crate::encoded::record::{has_internals, rules_versions};
use crate::model::record::Record;

/// A user in an export.
#[derive(Clone, Debug)]
pub struct ExportedUser {
    /// The user's id.
    pub id: LocalityId,
    /// The part that answers show.
    pub user: EncodedUser,
    /// An encoded `polynym.v1.UserInternals`; empty if the user has no internal part.
    pub internals: Bytes,
}

impl ExportedUser {
    /// The user of a record.
    pub fn from_record(record: &Record) -> Self {
        let internals = internals_message(record).encode_to_vec().into();
        Self { id: record.id(), user: EncodedUser::from_user(&record.user), internals }
    }

    /// Converts the output of [`Record::encode`].
    pub fn from_stored(user: EncodedUser, private: &[u8]) -> Result<Self, WireError> {
        if has_internals(private) {
            return Ok(Self::from_record(&Record::decode(&user, private)?));
        }
        let versions = rules_versions(private, user.identity_count())?;
        let internals = rules_message(&user, &versions).encode_to_vec().into();
        Ok(Self { id: user.id()?, user, internals })
    }
}
