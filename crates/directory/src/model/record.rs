//! Users as stores keep them: the visible part, and internals that only the rules use.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::attribute::{self, Value};
use super::claim::Claim;
use super::merge_report::NotRestored;
use super::policies::Policies;
use super::user::{Identity, State, User};
use crate::error::Error;
use crate::model::unknown::Unknown;
use crate::text::check_text;
use crate::timestamp::Timestamp;
use polynym_identifier::{Guard, Identifier, IdentityKey, Rules};

/// A user as stores keep it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The part that answers show.
    pub user: User,
    /// The part that answers do not show.
    pub internals: UserInternals,
}

/// The internal part of a user, empty for nearly all users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserInternals {
    /// Whether a deleted user is disabled once restored.
    pub disabled: bool,
    /// The guards of handles that are not all ASCII.
    pub guards: Vec<Guarded>,
    /// The released identifiers that are held for the user.
    pub holds: Vec<Hold>,
    /// The users that were merged into this one, directly or indirectly.
    pub merged: Vec<LocalityId>,
    /// The snapshot of a merged user that undoes the merge, until the undo window ends.
    pub undo: Option<Box<MergeSnapshot>>,
    /// The values that undoing the user's merge could not restore.
    pub not_restored: Vec<NotRestored>,
    /// Fields that a newer program added.
    pub unknown: Unknown,
}

/// A handle with its guard.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarded {
    /// The handle.
    pub handle: Identifier,
    /// The guard of its look-alikes.
    pub guard: Guard,
}

/// A key that is held for a user, or for nobody after a purge, with the data of its claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// The key.
    pub key: IdentityKey,
    /// The time when the hold ends.
    pub until: Timestamp,
    /// See [`Claim::guard`].
    pub guard: bool,
    /// See [`Claim::rules_version`].
    pub rules_version: u32,
}

impl Hold {
    /// The hold of a claim, if it is held.
    pub fn from_claim(key: &IdentityKey, claim: &Claim) -> Option<Self> {
        let Claim { guard, hold, rules_version, .. } = *claim;
        Some(Self { key: key.clone(), until: hold?, guard, rules_version })
    }
}

/// The state before a merge, as far as the merge changed it.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeSnapshot {
    /// The end of the undo window.
    pub until: Timestamp,
    /// The merged user before the merge.
    pub before: Record,
    /// The primary's display name before and after, if they differ.
    pub display_name: Option<(String, String)>,
    /// The primary's attributes that differ, before and after.
    pub attributes: BTreeMap<String, (Option<Value>, Value)>,
    /// The primary's identities that lost their primary mark.
    pub unmarked: Vec<Identifier>,
}

impl MergeSnapshot {
    /// The primary's attributes that differ, as they were before the merge, and after it.
    pub(crate) fn primary_attributes(&self) -> [BTreeMap<String, Value>; 2] {
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        for (name, (old, new)) in &self.attributes {
            before.extend(old.clone().map(|old| (name.clone(), old)));
            after.insert(name.clone(), new.clone());
        }
        [before, after]
    }

    /// Checks the values that undoing the merge restores by the rules for values of calls.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        let user = &self.before.user;
        check_text("internals.undo.user.display_name", &user.display_name)?;
        attribute::check(&user.attributes, "internals.undo.user.attributes")?;
        for name in self.display_name.iter().flat_map(|(before, after)| [before, after]) {
            check_text("internals.undo.display_name", name)?;
        }
        let mut changed = self.primary_attributes().into_iter();
        changed.try_for_each(|attribute| attribute::check(&attribute, "internals.undo.attributes"))
    }
}

impl Record {
    /// A user without internals.
    pub fn new(user: User) -> Self {
        Self { user, internals: UserInternals::default() }
    }

    /// The ids of the users that were merged into this one.
    pub fn merged(&self) -> &[LocalityId] {
        &self.internals.merged
    }

    /// The user's id.
    pub const fn id(&self) -> LocalityId {
        self.user.id
    }

    /// The time when the server purges a deleted user, or drops the snapshot of a merged one. See
    /// [`UserChange::Expire`](crate::mutation::UserChange::Expire).
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.user.state {
            State::Deleted { purge_time, .. } => Some(purge_time),
            State::Merged { .. } => self.internals.undo.as_ref().map(|undo| undo.until),
            State::Active | State::Disabled => None,
        }
    }

    /// The claims of the user, by their keys: the store has exactly these.
    pub fn claims(&self) -> Vec<(IdentityKey, Claim)> {
        let identities = self.user.identities.iter().map(|identity| self.claim(identity));
        let guards = self.internals.guards.iter().map(|guarded| self.guard_claim(guarded));
        let holds = self.internals.holds.iter().map(|Hold { key, until, guard, rules_version }| {
            (key.clone(), Claim { hold: Some(*until), ..self.claim_of(*rules_version, *guard) })
        });
        identities.chain(guards).chain(holds).collect()
    }

    /// The key of an identity of the user, and its claim.
    pub(crate) fn claim(&self, identity: &Identity) -> (IdentityKey, Claim) {
        (self.user.key(&identity.identifier), self.claim_of(identity.rules_version, false))
    }

    /// The key of a guard of the user, and its claim.
    pub(crate) fn guard_claim(&self, guarded: &Guarded) -> (IdentityKey, Claim) {
        let version = self
            .user
            .identity(&guarded.handle)
            .map_or(Rules::UNNAMED, |handle| handle.rules_version);
        (
            IdentityKey::of_guard(self.user.tenant.as_str(), &guarded.guard),
            self.claim_of(version, true),
        )
    }

    fn claim_of(&self, rules_version: u32, guard: bool) -> Claim {
        Claim { owner: Some(self.id()), guard, hold: None, rules_version }
    }

    /// Adds the guard of an identifier, if it has one and the tenant's policies require it.
    pub(crate) fn guard(&mut self, identifier: &Identifier, policies: &Policies) {
        let guard = policies.guard(identifier);
        let guarded = guard.map(|guard| Guarded { handle: identifier.clone(), guard });
        self.internals.guards.extend(guarded);
    }

    /// Adds an identity, with its guard.
    pub(crate) fn add_identity(&mut self, identity: Identity, guarded: Option<Guarded>) {
        self.user.identities.push(identity);
        self.internals.guards.extend(guarded);
    }

    /// Removes the user's `n`th identity, with its guard.
    pub(crate) fn remove_identity(&mut self, n: usize) -> (Identity, Option<Guarded>) {
        let identity = self.user.identities.remove(n);
        let guarded = self.unguard(&identity.identifier);
        (identity, guarded)
    }

    pub(crate) fn unguard(&mut self, identifier: &Identifier) -> Option<Guarded> {
        let n = self.internals.guards.iter().position(|guarded| guarded.handle == *identifier)?;
        Some(self.internals.guards.remove(n))
    }
}
