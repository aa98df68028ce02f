//! A user as stores keep it: what everybody may see, and beside it what only the rules of this
//! module need.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::claim::Claim;
use super::merge_report::NotRestored;
use super::policies::Policies;
use super::timestamp::Timestamp;
use super::user::{Identity, State, User};
use crate::model::unknown::Unknown;
use polynym_identifier::{Guard, Identifier, IdentityKey, Rules};

/// All that is kept of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The part that answers show.
    pub user: User,
    /// The part that answers do not show.
    pub(crate) private: UserInternals,
}

/// The internal part of a user. It is empty for nearly all users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserInternals {
    /// Of a deleted user: whether it is disabled when it comes back.
    pub disabled: bool,
    /// The guards of handles that are not all ASCII.
    pub guards: Vec<Guarded>,
    /// The identifiers that the user has given up and can take back before others.
    pub holds: Vec<Hold>,
    /// The users that were merged into this one, and those that were merged into them.
    pub merged: Vec<LocalityId>,
    /// Of a merged user: how to undo that, while it can be.
    pub undo: Option<Box<MergeSnapshot>>,
    /// Of a user that came out of a merge: what it did not get back.
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

/// A key that is held for a user or, where that was purged, for nobody, and the data of its claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// The key.
    pub key: IdentityKey,
    /// When the hold ends.
    pub until: Timestamp,
    /// See [`Claim::guard`].
    pub guard: bool,
    /// See [`Claim::rules_version`].
    pub rules_version: u32,
}

impl Hold {
    /// The hold of a claim that is held.
    pub fn of(key: &IdentityKey, claim: &Claim) -> Option<Self> {
        let Claim { guard, hold, rules_version, .. } = *claim;
        Some(Self { key: key.clone(), until: hold?, guard, rules_version })
    }
}

/// The state before a merge, as far as the merge changed it.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeSnapshot {
    /// Until when it can be undone.
    pub until: Timestamp,
    /// The merged user as it was.
    pub before: Record,
    /// The primary's display name before and after, where they differ.
    pub display_name: Option<(String, String)>,
    /// Those of the primary's attributes that differ, before and after.
    pub attributes: BTreeMap<String, (Option<Value>, Value)>,
    /// The primary's identities that were the primary ones of their kinds, and are no longer.
    pub unmarked: Vec<Identifier>,
}

impl Record {
    /// A user with nothing beside what is shown.
    pub fn new(user: User) -> Self {
        Self { user, private: UserInternals::default() }
    }

    /// The ids of the users that were merged into this one.
    pub fn merged(&self) -> &[LocalityId] {
        &self.private.merged
    }

    /// The user's id.
    pub const fn id(&self) -> LocalityId {
        self.user.id
    }

    /// When something is to be done about the user without anybody asking for it: a deleted user is
    /// to be purged, or what undoes a merge is to be forgotten. See
    /// [`UserChange::Expire`](crate::mutation::UserChange::Expire).
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.user.state {
            State::Deleted { purge_time, .. } => Some(purge_time),
            State::Merged { .. } => self.private.undo.as_ref().map(|undo| undo.until),
            State::Active | State::Disabled => None,
        }
    }

    /// The claims that follow from the user, by their keys: those that the store has to hold, and
    /// no others of this user.
    pub fn claims(&self) -> Vec<(IdentityKey, Claim)> {
        let identities = self.user.identities.iter().map(|identity| self.claim(identity));
        let guards = self.private.guards.iter().map(|guarded| self.guard_claim(guarded));
        let held = |Hold { key, until, guard, rules_version }: &Hold| {
            (key.clone(), Claim { hold: Some(*until), ..self.claim_of(*rules_version, *guard) })
        };
        identities.chain(guards).chain(self.private.holds.iter().map(held)).collect()
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

    /// Has the user's handles reserve what the tenant's policies ask for.
    pub(crate) fn guard(&mut self, identifier: &Identifier, policies: &Policies) {
        let guard = identifier.guard().filter(|_| !policies.allow_lookalikes);
        let guarded = guard.map(|guard| Guarded { handle: identifier.clone(), guard });
        self.private.guards.extend(guarded);
    }

    /// Gives the user an identity, with its guard.
    pub(crate) fn give(&mut self, identity: Identity, guarded: Option<Guarded>) {
        self.user.identities.push(identity);
        self.private.guards.extend(guarded);
    }

    /// Takes out the user's `n`th identity, with its guard.
    pub(crate) fn take(&mut self, n: usize) -> (Identity, Option<Guarded>) {
        let identity = self.user.identities.remove(n);
        let guarded = self.unguard(&identity.identifier);
        (identity, guarded)
    }

    pub(crate) fn unguard(&mut self, identifier: &Identifier) -> Option<Guarded> {
        let n = self.private.guards.iter().position(|guarded| guarded.handle == *identifier)?;
        Some(self.private.guards.remove(n))
    }
}
