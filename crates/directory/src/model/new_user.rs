//! A user that is to be created.

use std::collections::{BTreeMap, HashSet};

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::tenant::Tenant;
use super::timestamp::Timestamp;
use super::user::{Identity, State, User, Verification};
use crate::error::{Error, Invalid};
use crate::model::unknown::Unknown;
use polynym_identifier::{Identifier, IdentityKey, Kind, RULES_VERSION};

/// A user that is to be created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewUser {
    /// A name to show to people.
    pub display_name: String,
    /// The identities.
    pub identities: Vec<NewIdentity>,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
}

/// An identity that is to be linked.
#[derive(Clone, Debug, PartialEq)]
pub struct NewIdentity {
    /// The identifier.
    pub identifier: Identifier,
    /// The value as typed.
    pub display: String,
    /// When and by whom it was verified, if ever.
    pub verification: Option<Verification>,
    /// Whether it shall be the primary identity of its kind.
    pub primary: bool,
    /// The version of the rules that made the identifier.
    pub rules_version: u32,
}

impl NewUser {
    /// Checks what no store needs to be asked for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let mut primaries: HashSet<Kind> = HashSet::new();
        for (n, identity) in self.identities.iter().enumerate() {
            if !seen.insert(&identity.identifier) {
                let message = "the same identifier occurs before, in this or another spelling";
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
        let is = |identifier: &Identifier| {
            key.is_of(identifier) || identifier.guard().is_some_and(|guard| key.is_of_guard(&guard))
        };
        let position = self.identities.iter().position(|i| is(&i.identifier));
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
    /// An identity that nothing is said of but how it was typed, under the rules of this build.
    pub const fn new(identifier: Identifier, display: String) -> Self {
        Self {
            identifier,
            display,
            verification: None,
            primary: false,
            rules_version: RULES_VERSION,
        }
    }

    /// Whether it is an account that is shown by a name from its provider.
    pub(crate) fn has_name(&self) -> bool {
        self.identifier.social_parts().is_some_and(|(_, subject)| subject != self.display)
    }

    pub(crate) fn identity(&self, now: Timestamp) -> Identity {
        Identity {
            identifier: self.identifier.clone(),
            display: self.display.clone(),
            rules_version: self.rules_version,
            link_time: now,
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
