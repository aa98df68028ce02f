//! Mutations as pure functions: from what a store has read to what it is to write.

use super::change;
use super::settle::{Transition, settle};
use super::view::Stop;
use super::{
    Decision, Draft, DraftIdentity, Effects, Error, Limits, Needs, Record, Tenant, Timestamp, Update, Verification,
    View,
};
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
    /// What deciding needs in nearly every case. A store that reads this first is seldom asked for more.
    pub fn needs(&self) -> Needs {
        let key = |draft: &DraftIdentity| IdentityKey::new(self.tenant.as_str(), &draft.identifier);
        let claims = match &self.change {
            Change::Create(draft) => draft.identities.iter().map(key).collect(),
            Change::Link(draft) | Change::Replace(_, draft) => vec![key(draft)],
            Change::Update(_) | Change::Unlink(_) | Change::Verify(..) => Vec::new(),
        };
        Needs { users: vec![self.user_id], claims }
    }

    /// What is to be done, given what was read; or what must be read first. Pure: the same answer for the same view.
    ///
    /// # Errors
    /// Why nothing is to be done: [`Error::UserNotFound`], [`Error::EtagMismatch`], [`Error::NotOwned`],
    /// [`Error::TooMany`] or [`Error::IdentityTaken`].
    pub fn decide(&self, view: &View) -> Result<Decision, Error> {
        decided(self.effects(view))
    }

    /// What to answer where this request was carried out before, with the answer about `subject`. Nothing is written.
    ///
    /// # Errors
    /// [`Error::UserNotFound`] where that user is gone.
    pub fn decide_again(&self, subject: LocalityId, view: &View) -> Result<Decision, Error> {
        let again = || {
            let record = view.read_user(subject)?.ok_or(Error::UserNotFound)?;
            Ok(Effects { subject, users: Vec::new(), claims: Vec::new(), unchanged: Some(record.user.clone()) })
        };
        decided(again())
    }

    fn effects(&self, view: &View) -> Result<Effects, Stop> {
        let before = match self.change {
            Change::Create(_) => view.read_new_user(self.user_id)?,
            _ => view.read_user(self.user_id)?,
        };
        let after = match (&self.change, before) {
            (Change::Create(draft), None) => Record { user: draft.user(self.user_id, self.tenant.clone(), self.time) },
            (Change::Create(_), Some(_)) => return Err(Error::Internal("an id was given twice".into()).into()),
            (_, Some(before)) if before.user.tenant == self.tenant => self.changed(before)?,
            _ => return Err(Error::UserNotFound.into()),
        };
        settle(self, view, vec![Transition { before, after }])
    }

    fn changed(&self, before: &Record) -> Result<Record, Error> {
        if self.etag.as_ref().is_some_and(|etag| *etag != before.user.etag()) {
            return Err(Error::EtagMismatch);
        }
        let mut after = before.clone();
        change::apply(&self.change, &mut after, self.time)?;
        Ok(after)
    }

    /// The path of the field that names the identifier of `key`.
    pub(super) fn field_of(&self, key: &IdentityKey) -> String {
        match &self.change {
            Change::Create(draft) => draft.field_of(key),
            Change::Replace(..) => "new_identifier".to_owned(),
            _ => "identifier".to_owned(),
        }
    }
}

fn decided(effects: Result<Effects, Stop>) -> Result<Decision, Error> {
    match effects {
        Ok(effects) => Ok(Decision::Done(effects)),
        Err(Stop::Read(needs)) => Ok(Decision::Read(needs)),
        Err(Stop::Refuse(error)) => Err(error),
    }
}
