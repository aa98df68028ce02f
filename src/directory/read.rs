//! Look-ups.

use std::fmt;
use std::sync::Arc;

use super::follow::Followed;
use super::{
    ANSWER_BYTES, Claim, Consistency, Directory, Error, Found, Invalid, ItemResult, Policies, State, Tenant, WireUser,
};
use crate::identifier::{Identifier, IdentityKey, Normalization, RawIdentifier, Rejection};
use crate::locality::LocalityId;

/// A user by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    /// The user, or the one that it was merged into.
    pub user: WireUser,
    /// The id that was asked for, where it is a merged user's.
    pub merged_from: Option<LocalityId>,
}

/// Why a batch has no answer to an item that the store has left out.
const FULL: Error = Error::AnswerFull { limit: ANSWER_BYTES };

impl Directory {
    /// The owner of an identifier, and how many reads it took.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::IdentityNotFound`], [`Error::UserDisabled`], [`Error::TenantNotFound`],
    /// [`Error::Unavailable`].
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        raw: Option<RawIdentifier<'_>>,
        consistency: Consistency,
        show_disabled: bool,
    ) -> Result<(Found, u32), Error> {
        let identifier = self.parse("identifier", raw)?;
        let policies = self.policies(tenant).await?;
        let key = IdentityKey::new(tenant.as_str(), &identifier);
        let resolved = self.store.resolve(&[key], consistency).await?;
        let found = resolved.found.into_iter().next().ok_or(FULL)??;
        Ok((shown(found, &policies, show_disabled)?, resolved.reads))
    }

    /// The owners of many identifiers, in their order, each with its own outcome, and how many reads it took.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn batch_resolve(
        &self,
        tenant: &Tenant,
        raw: &[Option<RawIdentifier<'_>>],
        consistency: Consistency,
        show_disabled: bool,
    ) -> Result<(Vec<Result<Found, Error>>, u32), Error> {
        self.check_batch(raw.len())?;
        let policies = self.policies(tenant).await?;
        let parse = |(n, raw): (usize, &Option<_>)| self.parse(format_args!("identifiers[{n}]"), *raw);
        let identifiers: Vec<_> = raw.iter().enumerate().map(parse).collect();
        let good = identifiers.iter().flatten();
        let keys: Vec<_> = good.map(|i| IdentityKey::new(tenant.as_str(), i)).collect();
        let resolved = self.store.resolve(&keys, consistency).await?;
        let mut found = resolved.found.into_iter();
        let outcome = |identifier: Result<Identifier, Error>| {
            identifier.and_then(|_| shown(found.next().ok_or(FULL)??, &policies, show_disabled))
        };
        Ok((identifiers.into_iter().map(outcome).collect(), resolved.reads))
    }

    /// A user by id.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn get(&self, tenant: &Tenant, user_id: &str) -> Result<Got, Error> {
        self.policies(tenant).await?;
        let id = parse_user_id("user_id", user_id)?;
        let users = self.get_present(tenant, &[id]).await?;
        users.into_iter().next().ok_or(FULL)??.ok_or(Error::UserNotFound)
    }

    /// Users by their ids, in their order, each with its own outcome.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn batch_get(&self, tenant: &Tenant, user_ids: &[String]) -> Result<Vec<Result<Got, Error>>, Error> {
        self.check_batch(user_ids.len())?;
        self.policies(tenant).await?;
        let parse = |(n, id): (usize, &String)| parse_user_id(&format!("user_ids[{n}]"), id);
        let ids: Vec<_> = user_ids.iter().enumerate().map(parse).collect();
        let good: Vec<_> = ids.iter().flatten().copied().collect();
        let mut users = self.get_present(tenant, &good).await?.into_iter();
        let outcome =
            |id: Result<LocalityId, Error>| id.and_then(|_| users.next().ok_or(FULL)??.ok_or(Error::UserNotFound));
        Ok(ids.into_iter().map(outcome).collect())
    }

    /// Those of the users that are there and not to be purged by now. Who was merged into another is followed.
    async fn get_present(&self, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<ItemResult<Got>>, Error> {
        let followed = self.follow(tenant, ids).await?;
        let now = self.now();
        let is_gone =
            |user: &WireUser| matches!(user.state(), State::Deleted { purge_time, .. } if now.is_past(purge_time));
        let got = |(followed, id): (Followed, &LocalityId)| {
            let Some(user) = followed.user?.filter(|user| !is_gone(user)) else { return Ok(None) };
            let merged_from = Some(*id).filter(|id| !user.has_id(*id));
            Ok(Some(Got { user, merged_from }))
        };
        Ok(followed.into_iter().zip(ids).map(got).collect())
    }

    /// What an identifier becomes, and the key under which a tenant stores it.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn normalize(
        &self,
        tenant: &Tenant,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<(Normalization, IdentityKey), Error> {
        let raw = present("identifier", raw)?;
        let normalization = Identifier::normalize(raw).map_err(|rejection| rejected("identifier", &rejection))?;
        let key = IdentityKey::new(tenant.as_str(), &normalization.identifier);
        Ok((normalization, key))
    }

    /// The identifier in canonical form, and why it could not be linked now to a user who has nothing to do with it.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn check_identity(
        &self,
        tenant: &Tenant,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<(Identifier, Option<Error>), Error> {
        let identifier = self.parse("identifier", raw)?;
        let policies = self.policies(tenant).await?;
        let guard = identifier.guard().filter(|_| !policies.allow_lookalikes);
        let guard = guard.map(|guard| IdentityKey::of_guard(tenant.as_str(), &guard));
        let keys: Vec<_> = std::iter::once(IdentityKey::new(tenant.as_str(), &identifier)).chain(guard).collect();
        let claims = self.store.claims(&keys).await?;
        let now = self.now();
        let wanted = |n| Claim { owner: None, guard: n > 0, hold: None, rules_version: self.rules.version() };
        let refusal = |(n, claim): (usize, Option<Claim>)| claim?.refusal(&wanted(n), now, || "identifier".to_owned());
        let refusal = claims.into_iter().enumerate().find_map(refusal);
        Ok((identifier, refusal))
    }

    /// The rules of a tenant.
    pub(super) async fn policies(&self, tenant: &Tenant) -> Result<Arc<Policies>, Error> {
        match self.tenants.policies(&*self.store, tenant).await? {
            Some(policies) => Ok(policies),
            None if self.closed => Err(Error::TenantNotFound),
            None => Ok(Arc::default()),
        }
    }

    /// Parses the identifier that `field` names; `None` where the request has none there.
    pub(super) fn parse(&self, field: impl fmt::Display, raw: Option<RawIdentifier<'_>>) -> Result<Identifier, Error> {
        let raw = present(&field, raw)?;
        self.rules.parse(raw).map_err(|rejection| rejected(field, &rejection))
    }

    fn check_batch(&self, count: usize) -> Result<(), Error> {
        let limit = self.limits.batch;
        if count > limit { Err(Error::BatchTooLarge { limit, count }) } else { Ok(()) }
    }
}

/// What of a look-up's result its caller may see.
fn shown(found: Option<Found>, policies: &Policies, show_disabled: bool) -> Result<Found, Error> {
    let found = found.filter(|found| !policies.hide_unverified || found.is_verified());
    let found = found.ok_or(Error::IdentityNotFound)?;
    match found.user.state() {
        State::Active => Ok(found),
        State::Disabled if show_disabled => Ok(found),
        State::Disabled => Err(Error::UserDisabled),
        State::Deleted { .. } | State::Merged { .. } => Err(Error::IdentityNotFound),
    }
}

fn present<'a>(field: impl fmt::Display, raw: Option<RawIdentifier<'a>>) -> Result<RawIdentifier<'a>, Error> {
    let missing = "an identifier is missing: set one of email, handle, phone, social and url";
    raw.ok_or_else(|| Error::invalid(Invalid::Identifier, field.to_string(), missing))
}

fn rejected(field: impl fmt::Display, rejection: &Rejection) -> Error {
    Error::invalid(Invalid::Identifier, field.to_string(), rejection.to_string())
}

/// Parses a user's id that `field` names.
pub(super) fn parse_user_id(field: &str, text: &str) -> Result<LocalityId, Error> {
    let message = "a user's id is a UUID in its 36-character text form";
    text.parse().map_err(|_| Error::invalid(Invalid::UserId, field, message))
}
