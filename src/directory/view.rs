//! What passes between the rules and a store while a mutation is decided: what was read, what must still be read, and
//! what is to be written. Data alone: no store, and no rule.

use std::collections::HashMap;

use super::{Claim, ClaimWrite, Error, Record, User};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// What a store has read for a mutation, all of it at one moment.
#[derive(Debug, Default)]
pub struct View {
    users: HashMap<LocalityId, Option<Record>>,
    claims: HashMap<IdentityKey, Option<Claim>>,
    assumes_free: bool,
}

/// What a mutation cannot be decided without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Users, by their ids.
    pub users: Vec<LocalityId>,
    /// Claims, by their keys.
    pub claims: Vec<IdentityKey>,
}

/// What [`Mutation::decide`](super::Mutation::decide) says.
#[derive(Debug)]
pub enum Decision {
    /// Nothing yet: this must be read first. None of it is in the view.
    Read(Needs),
    /// What is to be done.
    Done(Effects),
}

/// What a mutation does, to be written in one transaction, and what its caller is told.
#[derive(Debug)]
pub struct Effects {
    /// The users to write, ascending by id: those that the view does not have are new.
    pub users: Vec<Record>,
    /// The claims to write, ascending by key.
    pub claims: Vec<(IdentityKey, ClaimWrite)>,
    /// The user whom the answer is about. A request is remembered with it.
    pub subject: LocalityId,
    /// The subject, where it is not written.
    pub(super) unchanged: Option<User>,
}

/// What the caller of a mutation is told once it has happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The user as it is now.
    pub user: Option<User>,
}

/// Why a decision ends early.
pub(super) enum Stop {
    Read(Needs),
    Refuse(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refuse(error)
    }
}

/// What a view says of something.
pub(super) enum Seen<'v, T> {
    /// Nothing: it was not read.
    Unread,
    /// That it is not there.
    Absent,
    There(&'v T),
}

impl View {
    /// A view that takes what was not read for absent: claims, and the user of a new id. For stores in which reading
    /// costs more than finding out, when they write, that something was there after all.
    pub fn assuming_free() -> Self {
        Self { assumes_free: true, ..Self::default() }
    }

    /// Adds what was read of a user.
    pub fn add_user(&mut self, id: LocalityId, record: Option<Record>) {
        self.users.insert(id, record);
    }

    /// Adds what was read of a claim.
    pub fn add_claim(&mut self, key: IdentityKey, claim: Option<Claim>) {
        self.claims.insert(key, claim);
    }

    /// The user, if it was read and is there.
    pub fn user(&self, id: LocalityId) -> Option<&Record> {
        self.users.get(&id)?.as_ref()
    }

    /// The user, who must be read.
    pub(super) fn read_user(&self, id: LocalityId) -> Result<Option<&Record>, Stop> {
        let user = self.users.get(&id).map(Option::as_ref);
        user.ok_or_else(|| Stop::Read(Needs { users: vec![id], claims: Vec::new() }))
    }

    /// The user with an id that nobody should have.
    pub(super) fn read_new_user(&self, id: LocalityId) -> Result<Option<&Record>, Stop> {
        if self.assumes_free { Ok(self.user(id)) } else { self.read_user(id) }
    }

    /// What stands under a key that is to be taken.
    pub(super) fn claim(&self, key: &IdentityKey) -> Seen<'_, Claim> {
        match self.claims.get(key) {
            Some(Some(claim)) => Seen::There(claim),
            None if !self.assumes_free => Seen::Unread,
            Some(None) | None => Seen::Absent,
        }
    }
}

impl Effects {
    /// What to tell the caller once all is written.
    pub fn into_outcome(self) -> Outcome {
        let written = self.users.into_iter().find(|record| record.id() == self.subject);
        Outcome { user: self.unchanged.or(written.map(|record| record.user)) }
    }
}

impl Outcome {
    /// The user.
    ///
    /// # Errors
    /// [`Error::Internal`] where the mutation was about none.
    pub fn into_user(self) -> Result<User, Error> {
        self.user.ok_or_else(|| Error::Internal("a mutation of a user without its user".into()))
    }
}
