//! Users and identities before their creation.

use std::collections::{BTreeMap, HashSet};

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::tenant::Tenant;
use super::user::{Identity, State, User, Verification};
use crate::error::{Error, Invalid};
use crate::model::unknown::Unknown;
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, IdentityKey, Kind, RULES_VERSION};

/// A user to create.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewUser {
    /// A name to show to people.
    pub display_name: String,
    /// The identities.
    pub identities: Vec<NewIdentity>,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
}

/// An identity to link.
#[derive(Clone, Debug, PartialEq)]
pub struct NewIdentity {
    /// The identifier.
    pub identifier: Identifier,
    /// The value as typed.
    pub display: String,
    /// The time and the caller of its verification, if it is verified.
    pub verification: Option<Verification>,
    /// Whether it becomes the primary identity of its kind.
    pub primary: bool,
    /// The version of the rules that normalised the identifier.
    pub rules_version: u32,
}

impl NewUser {
    /// Runs the checks that need no store.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let mut primaries: HashSet<Kind> = HashSet::new();
        for (n, identity) in self.identities.iter().enumerate() {
            if !seen.insert(&identity.identifier) {
                let message = "the same identifier occurs twice, perhaps in another spelling";
                return Err(Error::invalid(Invalid::DuplicateIdentifier, field(n), message));
            }
            if identity.primary && !primaries.insert(identity.identifier.kind()) {
                let path = format!("user.identities[{n}].primary");
                return Err(Error::invalid(
                    Invalid::Field,
                    path,
                    "only one identity of a kind can be primary",
                ));
            }
        }

        Ok(())
    }

    /// The path of the field that names the identifier of `key`, or the one that `key` guards.
    pub(crate) fn field_of(&self, key: &IdentityKey) -> String {
        let position = self.identities.iter().position(|new| concerns(key, &new.identifier));
        field(position.unwrap_or_default())
    }

    /// The user that registers with this id at this time.
    pub fn user(&self, id: LocalityId, tenant: Tenant, now: Timestamp) -> User {
        User {
            id,
            tenant,
            display_name: self.display_name.clone(),
            identities: self.identities.iter().map(|i| i.identity(now)).collect(),
            attributes: self.attributes.clone(),
            state: State::Active,
            create_time: now,
            update_time: now,
            unknown: Unknown::default(),
        }
    }
}

impl NewIdentity {
    /// An unverified identity, normalised by the rules of this build.
    pub const fn new(identifier: Identifier, display: String) -> Self {
        Self {
            identifier,
            display,
            verification: None,
            primary: false,
            rules_version: RULES_VERSION,
        }
    }

    /// Whether it is a social account displayed by the provider's name for it.
    pub(crate) fn has_name(&self) -> bool {
        self.identifier.social_parts().is_some_and(|(_, subject)| subject != self.display)
    }

    pub(crate) fn identity(&self, now: Timestamp) -> Identity {
        Identity {
            identifier: self.identifier.clone(),
            display: self.display.clone(),
            rules_version: self.rules_version,
            link_time: now,
            import_time: None,
            verification: self.verification.clone(),
            primary: self.primary,
            unknown: Unknown::default(),
        }
    }
}

/// The path of the `n`th identity's identifier.
pub(crate) fn field(n: usize) -> String {
    format!("user.identities[{n}].identifier")
}

/// Whether `key` is that of an identifier or of its guard.
pub(crate) fn concerns(key: &IdentityKey, identifier: &Identifier) -> bool {
    key.is_of(identifier) || identifier.guard().is_some_and(|guard| key.is_of_guard(&guard))
}
