//! The users and holds of the reference model.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use polynym_directory::{
    Error, Identity, Mutation, NewIdentity, NotRestored, State, Tenant, Timestamp, Unknown, User,
    UserChange,
};
use polynym_identifier::{Identifier, IdentityKey, RULES_VERSION};

#[derive(Clone, Default)]
pub struct ReferenceModel {
    pub people: BTreeMap<LocalityId, Person>,
    pub holds: BTreeMap<IdentityKey, Held>,
}

#[derive(Clone)]
pub struct Person {
    pub user: User,
    /// Its handles with a guard.
    pub guarded: BTreeSet<Identifier>,
    /// Whether it was disabled before its deletion.
    pub disabled: bool,
    /// The merge into another user that can be undone.
    pub merge: Option<Box<Merge>>,
    pub not_restored: Vec<NotRestored>,
}

/// A key without an owner that is still reserved.
#[derive(Clone)]
pub struct Held {
    pub owner: Option<LocalityId>,
    pub guard: bool,
    pub until: Timestamp,
}

impl Person {
    /// Its keys, and whether each is a guard.
    pub fn keys(&self) -> Vec<(IdentityKey, bool)> {
        let tenant = self.user.tenant.as_str();
        let own =
            self.user.identities.iter().map(|i| (IdentityKey::new(tenant, &i.identifier), false));
        let guards = self.guarded.iter().filter_map(Identifier::guard);
        own.chain(guards.map(|guard| (IdentityKey::of_guard(tenant, &guard), true))).collect()
    }

    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.user.state {
            State::Deleted { purge_time, .. } => Some(purge_time),
            _ => self.merge.as_ref().map(|merge| merge.until),
        }
    }

    pub fn add_identity(
        &mut self,
        new: &NewIdentity,
        at: usize,
        primary: bool,
        time: Timestamp,
        mutation: &Mutation,
    ) {
        let identity = Identity {
            identifier: new.identifier.clone(),
            display: new.display.clone(),
            rules_version: RULES_VERSION,
            link_time: time,
            import_time: None,
            verification: new.verification.clone(),
            primary,
            unknown: Unknown::default(),
        };
        self.user.identities.insert(at, identity);

        if new.identifier.guard().is_some() && !mutation.policies.allow_lookalikes {
            self.guarded.insert(new.identifier.clone());
        }
    }

    pub fn remove_identity(&mut self, at: usize) -> Identity {
        let identity = self.user.identities.remove(at);
        self.guarded.remove(&identity.identifier);
        identity
    }

    /// The position of this identity in the list.
    pub fn position(&self, wanted: &Identifier) -> Result<usize, Error> {
        let at = self.user.identities.iter().position(|identity| identity.identifier == *wanted);
        at.ok_or(Error::NotOwned)
    }
}

/// A merge that can be undone.
#[derive(Clone)]
pub struct Merge {
    pub until: Timestamp,
    pub secondary: Person,
    /// The primary before and after.
    pub primary: (User, User),
    /// The holds that the secondary had.
    pub holds: Vec<(IdentityKey, Timestamp)>,
}

impl ReferenceModel {
    /// The claim under a key: its owner, whether it is a guard, and the end of its hold.
    pub fn claim(
        &self,
        key: &IdentityKey,
        now: i64,
    ) -> Option<(Option<LocalityId>, bool, Option<Timestamp>)> {
        for (id, person) in &self.people {
            if let Some((_, guard)) = person.keys().into_iter().find(|(claimed, _)| claimed == key)
            {
                return Some((Some(*id), guard, None));
            }
        }
        let held = self.holds.get(key).filter(|held| held.until.as_millis() > now)?;
        Some((held.owner, held.guard, Some(held.until)))
    }

    /// The user with this id, unless it has expired.
    pub fn present(
        &self,
        id: LocalityId,
        tenant: &Tenant,
        now: Timestamp,
    ) -> Result<&Person, Error> {
        let person = self.people.get(&id).filter(|person| person.user.tenant == *tenant);
        let is_over = |person: &&Person| match person.user.state {
            State::Deleted { purge_time, .. } => purge_time <= now,
            _ => false,
        };
        person.filter(|person| !is_over(person)).ok_or(Error::UserNotFound)
    }

    /// The user with this id, if its state allows the mutation.
    pub fn changeable(&self, id: LocalityId, mutation: &Mutation) -> Result<Person, Error> {
        let person = self.present(id, &mutation.tenant, mutation.now.time)?;
        let fault = match person.user.state {
            State::Merged { into } => Some(Error::UserMerged { user: id, into }),
            State::Deleted { .. } => match mutation.user_change() {
                Some(UserChange::Undelete | UserChange::Purge) => None,
                Some(UserChange::Delete) => Some(Error::UserNotFound),
                _ => Some(Error::UserDeleted { user: id }),
            },
            _ if mutation.user_change() == Some(&UserChange::Undelete) => {
                Some(Error::UserNotDeleted)
            }
            _ => None,
        };

        fault.map_or_else(|| Ok(person.clone()), Err)
    }

    /// Whether a user is merged into another, directly or through others.
    pub fn leads_to(&self, id: LocalityId, wanted: LocalityId) -> bool {
        match self.people.get(&id).map(|person| person.user.state) {
            Some(State::Merged { into }) => into == wanted || self.leads_to(into, wanted),
            _ => false,
        }
    }
}
