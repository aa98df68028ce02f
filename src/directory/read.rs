//! Look-ups.

use std::fmt;

use super::{ANSWER_BYTES, Consistency, Directory, Error, Found, Invalid, Tenant, WireUser};
use crate::identifier::{Identifier, IdentityKey, Normalization, RawIdentifier, Rejection};
use crate::locality::LocalityId;

/// Why a batch has no answer to an item that the store has left out.
const FULL: Error = Error::AnswerFull { limit: ANSWER_BYTES };

impl Directory {
    /// The owner of an identifier, and how many reads it took.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::IdentityNotFound`], [`Error::Unavailable`].
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        raw: Option<RawIdentifier<'_>>,
        consistency: Consistency,
    ) -> Result<(Found, u32), Error> {
        let identifier = parse("identifier", raw)?;
        let key = IdentityKey::new(tenant.as_str(), &identifier);
        let resolved = self.store.resolve(&[key], consistency).await?;
        let found = resolved.found.into_iter().next().flatten();
        Ok((found.ok_or(Error::IdentityNotFound)?, resolved.reads))
    }

    /// The owners of many identifiers, in their order, each with its own outcome, and how many reads it took.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::Unavailable`].
    pub async fn batch_resolve(
        &self,
        tenant: &Tenant,
        raw: &[Option<RawIdentifier<'_>>],
        consistency: Consistency,
    ) -> Result<(Vec<Result<Found, Error>>, u32), Error> {
        self.check_batch(raw.len())?;
        let parse = |(n, raw): (usize, &Option<_>)| parse(format_args!("identifiers[{n}]"), *raw);
        let identifiers: Vec<_> = raw.iter().enumerate().map(parse).collect();
        let good = identifiers.iter().flatten();
        let keys: Vec<_> = good.map(|i| IdentityKey::new(tenant.as_str(), i)).collect();
        let resolved = self.store.resolve(&keys, consistency).await?;
        let mut found = resolved.found.into_iter();
        let outcome = |identifier: Result<Identifier, Error>| {
            identifier.and_then(|_| found.next().ok_or(FULL)?.ok_or(Error::IdentityNotFound))
        };
        Ok((identifiers.into_iter().map(outcome).collect(), resolved.reads))
    }

    /// A user by id.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::Unavailable`].
    pub async fn get(&self, tenant: &Tenant, user_id: &str) -> Result<WireUser, Error> {
        let id = parse_user_id("user_id", user_id)?;
        let users = self.store.get(tenant, &[id]).await?;
        users.into_iter().next().flatten().ok_or(Error::UserNotFound)
    }

    /// Users by their ids, in their order, each with its own outcome.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::Unavailable`].
    pub async fn batch_get(&self, tenant: &Tenant, user_ids: &[String]) -> Result<Vec<Result<WireUser, Error>>, Error> {
        self.check_batch(user_ids.len())?;
        let parse = |(n, id): (usize, &String)| parse_user_id(&format!("user_ids[{n}]"), id);
        let ids: Vec<_> = user_ids.iter().enumerate().map(parse).collect();
        let good: Vec<_> = ids.iter().flatten().copied().collect();
        let mut users = self.store.get(tenant, &good).await?.into_iter();
        let outcome =
            |id: Result<LocalityId, Error>| id.and_then(|_| users.next().ok_or(FULL)?.ok_or(Error::UserNotFound));
        Ok(ids.into_iter().map(outcome).collect())
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

    /// The identifier in canonical form, and whether somebody owns it.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Unavailable`].
    pub async fn is_taken(&self, tenant: &Tenant, raw: Option<RawIdentifier<'_>>) -> Result<(Identifier, bool), Error> {
        let identifier = parse("identifier", raw)?;
        let key = IdentityKey::new(tenant.as_str(), &identifier);
        let resolved = self.store.resolve(&[key], Consistency::Latest).await?;
        Ok((identifier, resolved.found.into_iter().flatten().next().is_some()))
    }

    fn check_batch(&self, count: usize) -> Result<(), Error> {
        let limit = self.limits.batch;
        if count > limit { Err(Error::BatchTooLarge { limit, count }) } else { Ok(()) }
    }
}

/// Parses the identifier that `field` names; `None` where the request has none there.
pub(super) fn parse(field: impl fmt::Display, raw: Option<RawIdentifier<'_>>) -> Result<Identifier, Error> {
    let raw = present(&field, raw)?;
    Identifier::parse(raw).map_err(|rejection| rejected(field, &rejection))
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
