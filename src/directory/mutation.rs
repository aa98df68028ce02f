//! Mutations as pure functions: what a user becomes, and which claims that takes and releases.

use super::{Draft, DraftIdentity, Error, Identity, Limits, Tenant, Timestamp, Update, User, Verification};
use crate::identifier::{Identifier, IdentityKey};
use crate::locality::LocalityId;

/// One change of one user, with what must hold for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The tenant that the user belongs to.
    pub tenant: Tenant,
    /// The user.
    pub user_id: LocalityId,
    /// Where given: the etag that the user must have.
    pub etag: Option<String>,
    /// Where given: the name of this request, under which its outcome is remembered.
    pub request: Option<Request>,
    /// Now.
    pub time: Timestamp,
    /// What a user may have at most.
    pub limits: Limits,
    /// What to do.
    pub change: Change,
}

/// The name of a request. A store remembers it with the user for [`Request::LIFETIME_MILLIS`] once the mutation has
/// happened (AIP-155).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Tenant, method, request id and caller as one string: different requests have different keys.
    pub key: String,
    /// A hash of what was asked for, to tell a retry from another request under the same id.
    pub fingerprint: u64,
}

impl Request {
    /// How long the outcome of a request is remembered, in milliseconds: 24 hours.
    pub const LIFETIME_MILLIS: i64 = 24 * 60 * 60 * 1_000;
}

/// What a mutation does to its user.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Makes the user.
    Create(Draft),
    /// Sets fields.
    Update(Update),
    /// Gives the user an identity. One that the user has stays as it is, but for being verified now where it was not.
    Link(DraftIdentity),
    /// Takes an identity from the user.
    Unlink(Identifier),
    /// Puts the new identity in the place of the old one.
    Replace(Identifier, DraftIdentity),
    /// Sets or clears the verification of an identity.
    Verify(Identifier, Option<Verification>),
}

impl Mutation {
    /// What the user becomes. Pure: the same answer for the same `before`, which is the user as the store has it.
    ///
    /// # Errors
    /// [`Error::UserNotFound`], [`Error::EtagMismatch`], [`Error::NotOwned`] or [`Error::TooMany`].
    pub fn apply(&self, before: Option<&User>) -> Result<User, Error> {
        let mut after = match (&self.change, before) {
            (Change::Create(draft), None) => draft.user(self.user_id, self.tenant.clone(), self.time),
            (Change::Create(_), Some(_)) => return Err(Error::Internal("an id was given twice".into())),
            (_, Some(user)) if user.tenant == self.tenant => self.changed(user)?,
            _ => return Err(Error::UserNotFound),
        };
        after.settle_primaries();
        if let Some(before) = before.filter(|before| **before != after) {
            after.update_time = self.time.max(before.update_time);
        }
        self.check_limits(before, &after)?;
        Ok(after)
    }

    fn changed(&self, before: &User) -> Result<User, Error> {
        if self.etag.as_ref().is_some_and(|etag| *etag != before.etag()) {
            return Err(Error::EtagMismatch);
        }
        let mut user = before.clone();
        match &self.change {
            Change::Create(_) => {}
            Change::Update(update) => update.apply(&mut user),
            Change::Link(draft) => link(&mut user, draft, self.time),
            Change::Unlink(identifier) => {
                let n = position(&user, identifier)?;
                user.identities.remove(n);
            }
            Change::Replace(old, draft) => replace(&mut user, old, draft, self.time)?,
            Change::Verify(identifier, verification) => {
                let n = position(&user, identifier)?;
                user.identities[n].verification.clone_from(verification);
            }
        }
        Ok(user)
    }

    /// Nobody is refused for what was there before: a limit that was lowered only stops growth.
    fn check_limits(&self, before: Option<&User>, after: &User) -> Result<(), Error> {
        let had = |count: fn(&User) -> usize| before.map_or(0, count);
        let check = |what, limit, count: fn(&User) -> usize| match count(after) {
            n if n > limit && n > had(count) => Err(Error::TooMany { what, limit, count: n }),
            _ => Ok(()),
        };
        check("identities", self.limits.identities, |user| user.identities.len())?;
        check("attributes", self.limits.attributes, |user| user.attributes.len())
    }

    /// The error for a key that this mutation would take and that `owner` owns.
    pub fn taken(&self, key: &IdentityKey, owner: LocalityId) -> Error {
        let field = match &self.change {
            Change::Create(draft) => draft.field_of(key),
            Change::Replace(..) => "new_identifier".to_owned(),
            _ => "identifier".to_owned(),
        };
        Error::IdentityTaken { owner, field }
    }
}

fn position(user: &User, identifier: &Identifier) -> Result<usize, Error> {
    let is = |identity: &Identity| identity.identifier == *identifier;
    user.identities.iter().position(is).ok_or(Error::NotOwned)
}

fn link(user: &mut User, draft: &DraftIdentity, now: Timestamp) {
    match user.identities.iter_mut().find(|identity| identity.identifier == draft.identifier) {
        None => user.identities.push(draft.identity(now)),
        Some(identity) if identity.verification.is_none() => identity.verification.clone_from(&draft.verification),
        Some(_) => {}
    }
}

/// The new identity takes the old one's place in the list, and its mark where both are of one kind. One that the user has
/// already stays where it is, and where only the spelling differs, the identity stays what it was.
fn replace(user: &mut User, old: &Identifier, draft: &DraftIdentity, now: Timestamp) -> Result<(), Error> {
    let n = position(user, old)?;
    if *old == draft.identifier {
        user.identities[n].display.clone_from(&draft.display);
        return Ok(());
    }
    let primary = user.identities[n].primary && old.kind() == draft.identifier.kind();
    match position(user, &draft.identifier) {
        Ok(own) => {
            user.identities[own].primary |= primary;
            user.identities.remove(n);
        }
        Err(_) => user.identities[n] = Identity { primary, ..draft.identity(now) },
    }
    Ok(())
}

/// The claims that lie between two states of a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimChanges {
    /// Keys that the user comes to own, ascending.
    pub taken: Vec<IdentityKey>,
    /// Keys that the user owns no longer, ascending.
    pub released: Vec<IdentityKey>,
}

/// The claims to take and to release when a user changes from `before` to `after`.
pub fn claim_changes(before: Option<&User>, after: &User) -> ClaimChanges {
    let had = |identifier: &Identifier| before.is_some_and(|user| user.identity(identifier).is_some());
    let keys = |user: &User, keep: &dyn Fn(&Identifier) -> bool| {
        let identifiers = user.identities.iter().map(|identity| &identity.identifier);
        let mut keys: Vec<_> = identifiers.filter(|i| keep(i)).map(|i| user.key(i)).collect();
        keys.sort_unstable();
        keys
    };
    ClaimChanges {
        taken: keys(after, &|identifier| !had(identifier)),
        released: before.map_or_else(Vec::new, |user| keys(user, &|i| after.identity(i).is_none())),
    }
}
