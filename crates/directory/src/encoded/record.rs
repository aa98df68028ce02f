//! The internal part of a user's record, which answers omit. In most records all fields are absent,
//! and the part has no bytes.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;
use prost::Message;

use crate::encoded::decode::read_value;
use crate::encoded::encode::{encode_without_attributes, value_message};
use crate::encoded::encoded_user::EncodedUser;
use crate::encoded::error::WireError;
use crate::model::attribute::Value;
use crate::model::merge_report::NotRestored;
use crate::model::record::{Guarded, Hold, MergeSnapshot, Record, UserInternals};
use crate::model::unknown::{self, Unknown};
use crate::model::user::Identity;
use crate::timestamp::Timestamp;
use polynym_identifier::{Guard, Identifier, IdentityKey, Kind, Rules};
use polynym_proto::v1;

#[derive(Clone, PartialEq, Message)]
struct PrivateRecord {
    /// The version of the rules of each identity's canonical form, in order. Absent if all are
    /// [`Rules::UNNAMED`], whatever the version of the program.
    #[prost(uint32, repeated, tag = "1")]
    rules_versions: Vec<u32>,
    #[prost(bool, tag = "2")]
    disabled: bool,
    #[prost(message, repeated, tag = "3")]
    guards: Vec<GuardRecord>,
    #[prost(message, repeated, tag = "4")]
    holds: Vec<HoldRecord>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    merged: Vec<Vec<u8>>,
    #[prost(message, optional, boxed, tag = "6")]
    undo: Option<Box<UndoRecord>>,
    #[prost(message, repeated, tag = "7")]
    not_restored: Vec<NotRestoredRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct GuardRecord {
    #[prost(string, tag = "1")]
    handle: String,
    #[prost(string, tag = "2")]
    skeleton: String,
}

#[derive(Clone, PartialEq, Message)]
struct HoldRecord {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(int64, tag = "2")]
    until: i64,
    #[prost(bool, tag = "3")]
    guard: bool,
    /// Absent in records of other programs: [`Rules::UNNAMED`].
    #[prost(uint32, tag = "4")]
    rules_version: u32,
}

#[derive(Clone, PartialEq, Message)]
struct UndoRecord {
    #[prost(int64, tag = "1")]
    until: i64,
    #[prost(bytes = "vec", tag = "2")]
    user: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    display_name: Option<NameRecord>,
    #[prost(btree_map = "string, message", tag = "5")]
    attributes: BTreeMap<String, AttributeRecord>,
    #[prost(message, repeated, tag = "6")]
    unmarked: Vec<IdentifierRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct NameRecord {
    #[prost(string, tag = "1")]
    before: String,
    #[prost(string, tag = "2")]
    set: String,
}

#[derive(Clone, PartialEq, Message)]
struct AttributeRecord {
    #[prost(message, optional, tag = "1")]
    before: Option<v1::AttributeValue>,
    #[prost(message, optional, tag = "2")]
    set: Option<v1::AttributeValue>,
}

#[derive(Clone, PartialEq, Message)]
struct IdentifierRecord {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    canonical: String,
}

/// An identity, an attribute by its name, or else the display name.
#[derive(Clone, PartialEq, Message)]
struct NotRestoredRecord {
    #[prost(message, optional, tag = "1")]
    identity: Option<IdentifierRecord>,
    #[prost(string, tag = "2")]
    attribute: String,
}

/// The last field of the record that this program supports.
const LAST_FIELD: u32 = 7;
/// The number of the field of versions of rules, which exports omit.
const RULES_VERSIONS: u32 = 1;

/// Whether the output of [`encode_private`] has more than versions of rules.
pub fn has_internals(private: &[u8]) -> bool {
    unknown::fields(private).any(|field| field.tag != RULES_VERSIONS)
}

/// The versions of the rules of a user's identities, from the output of [`encode_private`].
pub fn rules_versions(private: &[u8], identities: usize) -> Result<Vec<u32>, WireError> {
    let message = PrivateRecord::decode(private).map_err(|error| WireError(error.to_string()))?;
    let mut versions = message.rules_versions;
    versions.resize(identities, Rules::UNNAMED);
    Ok(versions)
}

/// Encodes the internal part of a record.
pub fn encode_private(record: &Record) -> Vec<u8> {
    let identities = &record.user.identities;
    let is_named = |identity: &Identity| identity.rules_version != Rules::UNNAMED;
    let versions = if identities.iter().any(is_named) { identities.as_slice() } else { &[] };
    let UserInternals { disabled, guards, holds, merged, undo, not_restored, unknown } =
        &record.internals;
    let message = PrivateRecord {
        rules_versions: versions.iter().map(|identity| identity.rules_version).collect(),
        disabled: *disabled,
        guards: guards.iter().map(GuardRecord::from).collect(),
        holds: holds.iter().map(HoldRecord::from).collect(),
        merged: merged.iter().map(|id| id.as_bytes().to_vec()).collect(),
        undo: undo.as_deref().map(|undo| Box::new(undo.into())),
        not_restored: not_restored.iter().map(NotRestoredRecord::from).collect(),
    };
    let mut bytes = message.encode_to_vec();
    unknown.write(&mut bytes);

    bytes
}

/// Decodes the output of [`encode_private`] into a record.
pub fn decode_private(bytes: &[u8], record: &mut Record) -> Result<(), WireError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let message = PrivateRecord::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    for (identity, version) in record.user.identities.iter_mut().zip(message.rules_versions) {
        identity.rules_version = version;
    }

    record.internals = UserInternals {
        disabled: message.disabled,
        guards: message.guards.into_iter().map(Guarded::from).collect(),
        holds: message.holds.into_iter().map(Hold::try_from).collect::<Result<_, _>>()?,
        merged: message.merged.iter().map(|id| read_id(id)).collect::<Result<_, _>>()?,
        undo: message.undo.map(|undo| MergeSnapshot::try_from(*undo).map(Box::new)).transpose()?,
        not_restored: message
            .not_restored
            .into_iter()
            .map(NotRestored::try_from)
            .collect::<Result<_, _>>()?,
        unknown: Unknown::after(LAST_FIELD, bytes),
    };

    Ok(())
}

fn error(what: &str) -> WireError {
    WireError(format!("malformed {what}"))
}

fn read_id(bytes: &[u8]) -> Result<LocalityId, WireError> {
    let id: [u8; 16] = bytes.try_into().map_err(|_| error("id"))?;
    Ok(LocalityId::from(id))
}

impl From<&Guarded> for GuardRecord {
    fn from(guarded: &Guarded) -> Self {
        let handle = guarded.handle.canonical().to_owned();
        Self { handle, skeleton: guarded.guard.skeleton().to_owned() }
    }
}

impl From<GuardRecord> for Guarded {
    fn from(record: GuardRecord) -> Self {
        let handle = Identifier::from_canonical(Kind::Handle, record.handle);
        Self { handle, guard: Guard::from_skeleton(record.skeleton) }
    }
}

impl From<&Hold> for HoldRecord {
    fn from(hold: &Hold) -> Self {
        let Hold { key, until, guard, rules_version } = hold;
        let (key, until) = (key.as_str().to_owned(), until.as_millis());
        Self { key, until, guard: *guard, rules_version: *rules_version }
    }
}

impl TryFrom<HoldRecord> for Hold {
    type Error = WireError;

    fn try_from(record: HoldRecord) -> Result<Self, WireError> {
        let key = IdentityKey::from_stored(record.key).ok_or_else(|| error("key"))?;
        let HoldRecord { until, guard, rules_version, .. } = record;
        let rules_version = if rules_version == 0 { Rules::UNNAMED } else { rules_version };
        Ok(Self { key, until: Timestamp::from_millis(until), guard, rules_version })
    }
}

impl From<&Identifier> for IdentifierRecord {
    fn from(identifier: &Identifier) -> Self {
        Self {
            kind: identifier.kind().as_str().to_owned(),
            canonical: identifier.canonical().to_owned(),
        }
    }
}

impl TryFrom<IdentifierRecord> for Identifier {
    type Error = WireError;

    fn try_from(record: IdentifierRecord) -> Result<Self, WireError> {
        let kind = record.kind.parse().map_err(|_| error("kind"))?;
        Ok(Self::from_canonical(kind, record.canonical))
    }
}

impl From<&MergeSnapshot> for UndoRecord {
    fn from(undo: &MergeSnapshot) -> Self {
        let (user, private) = undo.before.encode();
        let attribute = |(before, set): &(Option<Value>, Value)| AttributeRecord {
            before: before.as_ref().map(value_message),
            set: Some(value_message(set)),
        };
        let name = |(before, set): &(String, String)| NameRecord {
            before: before.clone(),
            set: set.clone(),
        };

        Self {
            until: undo.until.as_millis(),
            user: user.into_bytes().to_vec(),
            private,
            display_name: undo.display_name.as_ref().map(name),
            attributes: undo
                .attributes
                .iter()
                .map(|(name, values)| (name.clone(), attribute(values)))
                .collect(),
            unmarked: undo.unmarked.iter().map(IdentifierRecord::from).collect(),
        }
    }
}

impl TryFrom<UndoRecord> for MergeSnapshot {
    type Error = WireError;

    fn try_from(record: UndoRecord) -> Result<Self, WireError> {
        let attribute = |(name, values): (String, AttributeRecord)| {
            let set = values.set.and_then(read_value).ok_or_else(|| error("attribute"))?;
            Ok((name, (values.before.and_then(read_value), set)))
        };
        Ok(Self {
            until: Timestamp::from_millis(record.until),
            before: Record::decode(&EncodedUser::from_stored(record.user.into()), &record.private)?,
            display_name: record.display_name.map(|name| (name.before, name.set)),
            attributes: record
                .attributes
                .into_iter()
                .map(attribute)
                .collect::<Result<_, WireError>>()?,
            unmarked: record
                .unmarked
                .into_iter()
                .map(Identifier::try_from)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl From<&NotRestored> for NotRestoredRecord {
    fn from(part: &NotRestored) -> Self {
        match part {
            NotRestored::Identity(identifier) => {
                Self { identity: Some(identifier.into()), attribute: String::new() }
            }
            NotRestored::Attribute(name) => Self { identity: None, attribute: name.clone() },
            NotRestored::DisplayName => Self { identity: None, attribute: String::new() },
        }
    }
}

impl TryFrom<NotRestoredRecord> for NotRestored {
    type Error = WireError;

    fn try_from(record: NotRestoredRecord) -> Result<Self, WireError> {
        Ok(match record.identity {
            Some(identifier) => Self::Identity(identifier.try_into()?),
            None if record.attribute.is_empty() => Self::DisplayName,
            None => Self::Attribute(record.attribute),
        })
    }
}

impl Record {
    /// The stored form: the encoded user of answers, and the internal part, which is empty for
    /// nearly all users.
    pub fn encode(&self) -> (EncodedUser, Vec<u8>) {
        (EncodedUser::from_user(&self.user), encode_private(self))
    }

    /// The stored form without attributes, for a store that keeps them beside the user.
    pub fn encode_without_attributes(&self) -> (EncodedUser, Vec<u8>) {
        let user = encode_without_attributes(&self.user);
        (EncodedUser::from_stored(user.into()), encode_private(self))
    }

    /// Decodes the output of [`Record::encode`].
    ///
    /// # Errors
    /// [`WireError`] for any other input.
    pub fn decode(user: &EncodedUser, private: &[u8]) -> Result<Self, WireError> {
        let mut record = Self::new(user.decode()?);
        decode_private(private, &mut record)?;
        Ok(record)
    }
}
