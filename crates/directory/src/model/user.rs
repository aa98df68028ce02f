//! A user and its identities.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::Xxh3Default;

use super::attribute::Value;
use super::tenant::Tenant;
use crate::clock::Now;
use crate::model::unknown::Unknown;
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, IdentityKey, Kind};

/// A user: one id and many identities.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// The id, which is never reused.
    pub id: LocalityId,
    /// The tenant that the user belongs to.
    pub tenant: Tenant,
    /// The name for display.
    pub display_name: String,
    /// The identities, in the order in which they were linked.
    pub identities: Vec<Identity>,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
    /// The state.
    pub state: State,
    /// The time when the user was created.
    pub create_time: Timestamp,
    /// The time when the user last changed.
    pub update_time: Timestamp,
    /// FieldHasher that a newer program added.
    pub unknown: Unknown,
}

/// The state of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// In use.
    #[default]
    Active,
    /// Disabled. It keeps its identities.
    Disabled,
    /// Deleted. It keeps its identities until it is purged.
    Deleted {
        /// The time when it was deleted.
        delete_time: Timestamp,
        /// The time when it will be purged. From then on it does not exist for callers.
        purge_time: Timestamp,
    },
    /// Merged into another user, who owns its identities.
    Merged {
        /// The other user.
        into: LocalityId,
    },
}

impl State {
    /// Whether it is that of a deleted user whose time to be purged has certainly come: the user
    /// does not exist for callers, even if no server has removed it yet.
    pub fn is_purge_due(&self, now: Now) -> bool {
        matches!(self, Self::Deleted { purge_time, .. } if now.is_past(*purge_time))
    }
}

/// An identifier that a user owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The identifier.
    pub identifier: Identifier,
    /// The value as typed.
    pub display: String,
    /// The version of the rules that normalised the identifier.
    pub rules_version: u32,
    /// The time when it was linked.
    pub link_time: Timestamp,
    /// The time when it was imported, if it was. Its owners before are not known.
    pub import_time: Option<Timestamp>,
    /// The time and the caller of its verification, if it is verified.
    pub verification: Option<Verification>,
    /// Whether it is the user's primary identity of its kind.
    pub primary: bool,
    /// FieldHasher that a newer program added.
    pub unknown: Unknown,
}

/// The verification of an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The time when it was verified.
    pub time: Timestamp,
    /// The verifier, as named by the caller.
    pub by: String,
}

impl User {
    /// The key of `identifier` in the user's tenant.
    pub fn key(&self, identifier: &Identifier) -> IdentityKey {
        IdentityKey::new(self.tenant.as_str(), identifier)
    }

    /// The user's identity with this identifier.
    pub fn identity(&self, identifier: &Identifier) -> Option<&Identity> {
        self.identities.iter().find(|identity| identity.identifier == *identifier)
    }

    /// A hash of the visible user, as 16 hex digits.
    pub fn etag(&self) -> String {
        let mut hash = FieldHasher::default();
        hash.bytes(self.id.as_bytes());
        hash.bytes(self.tenant.as_str().as_bytes());
        hash.bytes(self.display_name.as_bytes());
        hash.time(self.create_time);
        hash.time(self.update_time);
        hash.number(0, self.identities.len() as u64);
        for identity in &self.identities {
            hash.identity(identity);
        }

        for (name, value) in &self.attributes {
            hash.bytes(name.as_bytes());
            hash.value(value);
        }
        hash.state(self.state);

        format!("{:016x}", hash.digest())
    }

    /// Makes an identity the primary one of its kind.
    pub(crate) fn make_primary(&mut self, identifier: &Identifier) {
        for identity in &mut self.identities {
            if identity.identifier.kind() == identifier.kind() {
                identity.primary = identity.identifier == *identifier;
            }
        }
    }

    /// The user's primary identity of a kind.
    pub(crate) fn primary(&self, kind: Kind) -> Option<&Identity> {
        self.identities
            .iter()
            .find(|identity| identity.primary && identity.identifier.kind() == kind)
    }

    /// Makes the first identity of each kind primary, unless another one is.
    pub(crate) fn assign_primaries(&mut self) {
        for n in 0..self.identities.len() {
            let kind = self.identities[n].identifier.kind();
            let mut same = self.identities.iter().filter(|i| i.identifier.kind() == kind);
            if !same.any(|i| i.primary) {
                self.identities[n].primary = true;
            }
        }
    }
}

/// Hashes fields, each with its length or a tag, so that different users feed different bytes.
#[derive(Default)]
pub struct FieldHasher(Xxh3Default);

impl FieldHasher {
    /// The hash of the fields so far.
    pub fn digest(&self) -> u64 {
        self.0.digest()
    }

    /// Adds a field of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a number with a tag.
    pub fn number(&mut self, tag: u8, number: u64) {
        self.0.update(&[tag]);
        self.0.update(&number.to_le_bytes());
    }

    /// Adds a time.
    pub fn time(&mut self, time: Timestamp) {
        self.number(0, time.as_millis() as u64);
    }

    fn identity(&mut self, identity: &Identity) {
        self.bytes(identity.identifier.kind().as_str().as_bytes());
        self.bytes(identity.identifier.canonical().as_bytes());
        self.bytes(identity.display.as_bytes());
        self.time(identity.link_time);
        self.number(1, identity.primary.into());

        match &identity.verification {
            None => self.number(2, 0),
            Some(Verification { time, by }) => {
                self.number(3, time.as_millis() as u64);
                self.bytes(by.as_bytes());
            }
        }
    }

    /// Feeds the state, last; nothing for an active user. An attribute whose name's length looks
    /// like one of these tags feeds more bytes than any state.
    fn state(&mut self, state: State) {
        match state {
            State::Active => {}
            State::Disabled => self.number(0x80, 0),
            State::Deleted { delete_time, purge_time } => {
                self.number(0x81, delete_time.as_millis() as u64);
                self.time(purge_time);
            }
            State::Merged { into } => {
                self.number(0x82, 0);
                self.bytes(into.as_bytes());
            }
        }
    }

    /// Adds an attribute's value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.number(4, text.len() as u64);
                self.0.update(text.as_bytes());
            }
            Value::Int(number) => self.number(5, *number as u64),
            Value::Double(number) => self.number(6, number.to_bits()),
            Value::Bool(yes) => self.number(7, u64::from(*yes)),
            Value::Time(time) => self.number(8, time.as_millis() as u64),
            Value::List(items) => {
                self.number(9, items.len() as u64);
                items.iter().for_each(|item| self.bytes(item.as_bytes()));
            }
        }
    }
}
