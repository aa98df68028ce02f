//! Users as import files describe them.

pub mod reimport;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::new_user::NewIdentity;
use super::record::{Record, UserInternals};
use super::tenant::Tenant;
use super::user::{Identity, State, User};
use crate::error::Error;
use crate::model::event::ChangeSet;
use crate::model::imported_user::reimport::{LineField, OnExisting, Reimport};
use crate::model::unknown::Unknown;
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, IdentityKey};

/// A user as one line of an import describes it. Times may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedUser {
    /// Whether the line gives the user's id.
    pub has_id: bool,
    /// A name to show to people.
    pub display_name: String,
    /// The identities.
    pub identities: Vec<ImportedIdentity>,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
    /// The state.
    pub state: State,
    /// Whether the line gives the state.
    pub has_state: bool,
    /// The time when the user was created.
    pub create_time: Option<Timestamp>,
    /// The time when the user last changed.
    pub update_time: Option<Timestamp>,
    /// The internal part of the user, from an export.
    pub internals: Option<UserInternals>,
    /// The treatment of identities that cannot be linked.
    pub on_conflict: OnConflict,
    /// The fields of the line's identities that were skipped.
    pub skipped: Vec<LineField>,
    /// The treatment of a user who exists.
    pub reimport: Arc<Reimport>,
    /// Whether the line was found to be about the user that the mutation changes.
    pub is_found: bool,
}

/// An identity of such a user.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedIdentity {
    /// Its position in the line.
    pub index: usize,
    /// The identity.
    pub new: NewIdentity,
    /// The time when it was linked.
    pub link_time: Option<Timestamp>,
}

/// The treatment of a line with an identity that cannot be linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The line is rejected.
    #[default]
    Reject,
    /// The user is imported without that identity.
    SkipIdentity,
}

/// The result of importing a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The change of the user.
    pub effect: Effect,
    /// The identities that were skipped.
    pub skipped: Vec<SkippedIdentity>,
}

/// The change that a line makes to its user or to its hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// It was created.
    Created,
    /// An undo had deleted it, and the line restored it.
    Restored,
    /// It was there, and these differences were made.
    Changed(Box<ChangeSet>),
    /// It was there already.
    Unchanged,
}

/// An identity that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedIdentity {
    /// Its position in the line.
    pub index: usize,
    /// The reason.
    pub reason: SkipReason,
}

/// The reason why an identity cannot be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// This user owns it.
    Taken(LocalityId),
    /// It is held for its former owner until this time.
    Held(Timestamp),
    /// It looks like another that is in use.
    Confusable,
    /// It is reserved.
    Reserved,
}

impl SkippedIdentity {
    /// The reason as an error.
    pub fn error(&self) -> Error {
        let field = super::new_user::field(self.index);
        match self.reason {
            SkipReason::Taken(owner) => Error::IdentityTaken { owner, field },
            SkipReason::Held(until) => Error::IdentityHeld { until, field },
            SkipReason::Confusable => Error::IdentityConfusable { field },
            SkipReason::Reserved => Error::IdentityReserved { field },
        }
    }
}

impl ImportedUser {
    /// The line for this user: one that fills has nothing but what the user lacks.
    pub fn for_user(&self, user: &User) -> Cow<'_, Self> {
        if self.reimport.on_existing != OnExisting::Fill {
            return Cow::Borrowed(self);
        }
        let provider = |one: &Identifier| one.social_parts().map(|(name, _)| name.into_owned());
        let is_lacked = |identity: &ImportedIdentity| {
            let lacked = &identity.new.identifier;
            user.identities.iter().map(|one| &one.identifier).all(|present| {
                present.kind() != lacked.kind() || provider(present) != provider(lacked)
            })
        };
        let mut line = self.clone();
        line.identities.retain(is_lacked);
        line.attributes.retain(|name, _| !user.attributes.contains_key(name));
        if !user.display_name.is_empty() {
            line.display_name.clear();
        }
        line.has_state = false;
        Cow::Owned(line)
    }

    /// The path of the field that names the identifier of `key`, or the one that `key` guards.
    pub(crate) fn field_of(&self, key: &IdentityKey) -> String {
        match self
            .identities
            .iter()
            .find(|identity| super::new_user::concerns(key, &identity.new.identifier))
        {
            Some(identity) => super::new_user::field(identity.index),
            None => "internals.holds".to_owned(),
        }
    }

    /// The record that the line describes, imported at `now`.
    pub(crate) fn record(&self, id: LocalityId, tenant: &Tenant, now: Timestamp) -> Record {
        let create_time = self.create_time.unwrap_or(now);
        let identities = self.identities.iter().map(|identity| identity.identity(now)).collect();
        let mut user = User {
            id,
            tenant: tenant.clone(),
            display_name: self.display_name.clone(),
            identities,
            attributes: self.attributes.clone(),
            state: self.state,
            create_time,
            update_time: self.update_time.unwrap_or(now).max(create_time),
            unknown: Unknown::default(),
        };
        user.assign_primaries();
        Record { user, internals: self.internals.clone().unwrap_or_default() }
    }

    /// Whether the record of the user names other users.
    pub(crate) fn names_others(&self) -> bool {
        let internals = self.internals.as_ref();
        matches!(self.state, State::Merged { .. })
            || internals
                .is_some_and(|internals| internals.undo.is_some() || !internals.merged.is_empty())
    }

    /// Whether the line describes this user. Absent times and identities that may be skipped are
    /// ignored.
    pub(crate) fn is_like(&self, user: &User) -> bool {
        let mut wanted = self.record(user.id, &user.tenant, user.create_time).user;
        if self.on_conflict == OnConflict::SkipIdentity {
            wanted.identities.retain(|identity| user.identity(&identity.identifier).is_some());
            wanted.assign_primaries();
        }
        if self.update_time.is_none() {
            wanted.update_time = user.update_time;
        }
        let has_link_time = |identity: &Identity| {
            self.identities.iter().any(|imported| {
                imported.new.identifier == identity.identifier && imported.link_time.is_some()
            })
        };
        for (identity, present) in wanted.identities.iter_mut().zip(&user.identities) {
            identity.rules_version = present.rules_version;
            if !has_link_time(identity) {
                identity.link_time = present.link_time;
            }
        }

        wanted.etag() == user.etag()
    }

    /// Whether a line without an id is about this user: whether it has the key of the import.
    pub(crate) fn names(&self, user: &User) -> bool {
        if let Some(LineField::Attribute(name)) = &self.reimport.key {
            let wanted = self.attributes.get(name);
            return wanted.is_some() && wanted == user.attributes.get(name);
        }
        let mut keys = self.identities.iter().map(|identity| &identity.new.identifier);
        keys.any(|key| self.reimport.finds_by(key) && user.identity(key).is_some())
    }

    /// Whether a user loses this identity if the line lacks it. A field of which an identity was
    /// skipped keeps all of its identities: the skipped one may be a misspelling of any of them.
    pub(crate) fn clears_identity(&self, identifier: &Identifier) -> bool {
        self.reimport.clears(|field| {
            field.has_identity(identifier)
                && !self.skipped.iter().any(|skipped| skipped.overlaps(field))
        })
    }

    /// Whether a line without an id describes this user.
    pub(crate) fn describes(&self, user: &User) -> bool {
        !self.identities.is_empty()
            && self
                .identities
                .iter()
                .all(|identity| user.identity(&identity.new.identifier).is_some())
            && self.display_name == user.display_name
            && self.attributes == user.attributes
    }
}

impl ImportedIdentity {
    /// The identity, imported at `now`.
    pub(crate) fn identity(&self, now: Timestamp) -> Identity {
        let identity = self.new.identity(self.link_time.unwrap_or(now));
        Identity { import_time: Some(now), ..identity }
    }
}
