//! Look-ups.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use tokio::task::yield_now;

use crate::encoded::encoded_user::{EncodedUser, Found};
use crate::error::{Error, Invalid};
use crate::model::claim::Claim;
use crate::model::policies::Policies;
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::merge_redirects::Followed;
use crate::service::parse::parse_user_id;
use crate::service::tenant_cache::KnownTenant;
use crate::stores::{ANSWER_BYTES, Consistency, ItemResult, View};
use polynym_identifier::{Identifier, IdentityKey, Normalization, RawIdentifier, Rejection, Rules};

/// A user by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserById {
    /// The user, or the one that it was merged into.
    pub user: EncodedUser,
    /// The id that was asked for, where it is a merged user's.
    pub merged_from: Option<LocalityId>,
}

/// A user, as a caller names it.
#[derive(Clone, Copy, Debug)]
pub enum UserRef<'r> {
    /// The user with this id.
    Id(&'r str),
    /// The owner of this identifier.
    Owner(Option<RawIdentifier<'r>>),
}

/// The options of a look-up by identifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolveOptions {
    /// How fresh the answer is.
    pub consistency: Consistency,
    /// The greatest age of an answer from a cache; zero for none from there.
    pub max_staleness: Duration,
    /// Whether disabled users are answers.
    pub show_disabled: bool,
    /// The part of users that is read.
    pub view: View,
}

/// Why a batch has no answer to an item that the store has left out.
pub(crate) const FULL: Error = Error::AnswerFull { limit: ANSWER_BYTES };

/// Identifiers of a batch that are normalised before other calls get the thread: the costliest take
/// half a millisecond each.
const YIELD_EVERY: usize = 32;

impl Directory {
    /// The owner of an identifier, and how many reads it took.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::IdentityNotFound`], [`Error::UserDisabled`],
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        raw: Option<RawIdentifier<'_>>,
        options: ResolveOptions,
    ) -> Result<(Found, u32), Error> {
        let mut looked_up =
            self.look_up(tenant, &[raw], options, |_| "identifier".to_owned()).await?;
        let found = looked_up.found.pop().ok_or(FULL)??;
        Ok((shown(found, &looked_up.policies, options.show_disabled)?, looked_up.reads))
    }

    /// The owners of many identifiers, in their order, each with its own outcome, and how many
    /// reads it took.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn batch_resolve(
        &self,
        tenant: &Tenant,
        raw: &[Option<RawIdentifier<'_>>],
        options: ResolveOptions,
    ) -> Result<(Vec<Result<Found, Error>>, u32), Error> {
        self.check_batch(raw.len())?;
        let LookedUp { policies, found, reads } =
            self.look_up(tenant, raw, options, |n| format!("identifiers[{n}]")).await?;
        let shown =
            |found: Result<Option<Found>, Error>| shown(found?, &policies, options.show_disabled);
        Ok((found.into_iter().map(shown).collect(), reads))
    }

    /// A user by id.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::TenantNotFound`],
    /// [`Error::Unavailable`].
    pub async fn get(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
        view: View,
    ) -> Result<UserById, Error> {
        self.policies(&context.tenant).await?;
        let id = parse_user_id("user_id", user_id)?;
        let users = self.get_present(context, &[id], view).await?;
        users.into_iter().next().ok_or(FULL)??.ok_or(Error::UserNotFound)
    }

    /// Users by their ids, in their order, each with its own outcome.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn batch_get(
        &self,
        context: &RequestContext<'_>,
        user_ids: &[String],
        view: View,
    ) -> Result<Vec<Result<UserById, Error>>, Error> {
        self.check_batch(user_ids.len())?;
        self.policies(&context.tenant).await?;
        let parse = |(n, id): (usize, &String)| parse_user_id(&format!("user_ids[{n}]"), id);
        let ids: Vec<_> = user_ids.iter().enumerate().map(parse).collect();
        let good: Vec<_> = ids.iter().flatten().copied().collect();
        let mut users = self.get_present(context, &good, view).await?.into_iter();
        let outcome = |id: Result<LocalityId, Error>| {
            id.and_then(|_| users.next().ok_or(FULL)??.ok_or(Error::UserNotFound))
        };
        Ok(ids.into_iter().map(outcome).collect())
    }

    /// Those of the users that are there and not to be purged by now. Who was merged into another
    /// is followed.
    pub(crate) async fn get_present(
        &self,
        context: &RequestContext<'_>,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<UserById>>, Error> {
        let followed = self.follow(&context.tenant, ids, view).await?;
        let is_gone = |user: &EncodedUser| match user.state() {
            State::Deleted { purge_time, .. } => context.now.is_past(purge_time),
            _ => false,
        };
        let got = |(followed, id): (Followed, &LocalityId)| {
            let Some(user) = followed.user?.filter(|user| !is_gone(user)) else { return Ok(None) };
            let merged_from = Some(*id).filter(|id| !user.has_id(*id));
            Ok(Some(UserById { user, merged_from }))
        };
        Ok(followed.into_iter().zip(ids).map(got).collect())
    }

    /// The identifier as the store's rules normalise it, their version, and the key under which a
    /// tenant stores it.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Unavailable`].
    pub async fn normalize(
        &self,
        context: &RequestContext<'_>,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<(Normalization, u32, IdentityKey), Error> {
        let raw = present("identifier", raw)?;
        let (rules, _) = self.stored_rules(Consistency::Eventual).await?;
        let normalization = rules.normalize(raw);
        let normalization =
            normalization.map_err(|rejection| rejected("identifier", &rejection))?;
        let key = IdentityKey::new(context.tenant.as_str(), &normalization.identifier);
        Ok((normalization, rules.version(), key))
    }

    /// The identifier in canonical form, and why it could not be linked now to a user; where
    /// `user_id` is empty, to one who has nothing to do with it.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn check_identity(
        &self,
        context: &RequestContext<'_>,
        user_id: &str,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<(Identifier, Option<Error>), Error> {
        let user = if user_id.is_empty() { None } else { Some(parse_user_id("user_id", user_id)?) };
        let (rules, next) = self.stored_rules(Consistency::Latest).await?;
        let identifier = parse(rules, "identifier", raw)?;
        if next.is_some() {
            return Ok((identifier, Some(Error::RulesChanging)));
        }

        let policies = self.policies(&context.tenant).await?;
        let guard = identifier.guard().filter(|_| !policies.allow_lookalikes);
        let guard = guard.map(|guard| IdentityKey::of_guard(context.tenant.as_str(), &guard));
        let keys: Vec<_> = std::iter::once(IdentityKey::new(context.tenant.as_str(), &identifier))
            .chain(guard)
            .collect();
        let claims = self.backend.reads.claims(&keys).await?;
        let now = context.now;
        let wanted =
            |n| Claim { owner: user, guard: n > 0, hold: None, rules_version: rules.version() };
        let refusal = |(n, claim): (usize, Option<Claim>)| {
            claim?.refusal(&wanted(n), now, || "identifier".to_owned())
        };
        let is_own = |error: &Error| match error {
            Error::IdentityTaken { owner, .. } => Some(*owner) == user,
            _ => false,
        };
        let refusal = match claims.into_iter().enumerate().find_map(refusal) {
            Some(error) if is_own(&error) => None,
            None if policies.reserves(&identifier) => {
                Some(Error::IdentityReserved { field: "identifier".to_owned() })
            }
            refusal => refusal,
        };

        Ok((identifier, refusal))
    }

    /// The owners of identifiers, each by itself. `field` names them.
    async fn look_up(
        &self,
        tenant: &Tenant,
        raw: &[Option<RawIdentifier<'_>>],
        options: ResolveOptions,
        field: impl Fn(usize) -> String,
    ) -> Result<LookedUp, Error> {
        let consistency = options.consistency;
        loop {
            let stored = self.stored_rules(consistency).await?;
            let mut names = Vec::with_capacity(raw.len());
            for (n, raw) in raw.iter().enumerate() {
                if n > 0 && n % YIELD_EVERY == 0 {
                    yield_now().await;
                }
                names.push(Name::new(stored, || field(n), *raw));
            }
            let is_any = names.iter().any(Result::is_ok);
            let policies = if is_any { self.policies(tenant).await? } else { Arc::default() };
            let (found, reads) = self.owners(tenant, names, options).await?;
            // An identity may have been moved before it was looked for, by a name that was not
            // known then.
            let is_missed = found.iter().any(|found| matches!(found, Ok(None)));
            if !is_missed || self.stored_rules(consistency).await? == stored {
                return Ok(LookedUp { policies, found, reads });
            }
        }
    }

    /// The owners of names, and how many reads it took. While identities are moved to other rules,
    /// one that nobody owns by the present ones may be owned by the next, which may be visible
    /// later on one shard than on another.
    async fn owners(
        &self,
        tenant: &Tenant,
        names: Vec<Result<Name, Error>>,
        options: ResolveOptions,
    ) -> Result<(Vec<Result<Option<Found>, Error>>, u32), Error> {
        let key = |identifier: &Identifier| IdentityKey::new(tenant.as_str(), identifier);
        let keys: Vec<_> = names.iter().flatten().map(|name| key(&name.present)).collect();
        let ResolveOptions { consistency, max_staleness, view, .. } = options;
        let lookups = &self.backend.lookups;
        let resolved = lookups.resolve(&keys, consistency, view, max_staleness).await?;
        let (mut found, mut reads) = (resolved.found.into_iter(), resolved.reads);
        let mut outcomes = Vec::with_capacity(names.len());
        for name in names {
            let mut outcome = name.and_then(|name| Ok((found.next().ok_or(FULL)??, name.next)));
            if let Ok((None, Some(next))) = &outcome {
                let next = [key(next)];
                let consistency = Consistency::Linearizable;
                let resolved = lookups.resolve(&next, consistency, view, Duration::ZERO).await?;
                reads += resolved.reads;
                let found = resolved.found.into_iter().next().unwrap_or(Ok(None));
                outcome = found.map(|found| (found, None)).map_err(Error::from);
            }
            outcomes.push(outcome.map(|(found, _)| found));
        }

        Ok((outcomes, reads))
    }

    /// The rules of a tenant.
    pub(crate) async fn policies(&self, tenant: &Tenant) -> Result<Arc<Policies>, Error> {
        Ok(self.known_tenant(tenant).await?.policies)
    }

    /// A tenant, or what it will be once it is made.
    pub(crate) async fn known_tenant(&self, tenant: &Tenant) -> Result<KnownTenant, Error> {
        match self.tenants.get(&*self.backend.tenants, tenant).await? {
            Some(tenant) => Ok(tenant),
            None if !self.auto_creates(tenant) => Err(Error::TenantNotFound),
            None => Ok(KnownTenant::default()),
        }
    }

    pub(crate) fn check_batch(&self, count: usize) -> Result<(), Error> {
        let limit = self.limits.batch;
        if count > limit { Err(Error::BatchTooLarge { limit, count }) } else { Ok(()) }
    }
}

/// The findings of a look-up.
struct LookedUp {
    policies: Arc<Policies>,
    found: Vec<Result<Option<Found>, Error>>,
    reads: u32,
}

/// An identifier that is looked for.
struct Name {
    /// By the rules that the store has.
    present: Identifier,
    /// By those to which it is moved, where that is another one.
    next: Option<Identifier>,
}

impl Name {
    fn new(
        (present, next): (Rules, Option<Rules>),
        field: impl Fn() -> String,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Self, Error> {
        let present = parse(present, fmt::from_fn(|f| f.write_str(&field())), raw)?;
        let next = next.zip(raw).and_then(|(rules, raw)| rules.parse(raw).ok());
        Ok(Self { next: next.filter(|next| *next != present), present })
    }
}

/// The result of a look-up that the caller may see.
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

/// Parses the identifier that `field` names, by these rules; `None` where the request has none
/// there.
pub(crate) fn parse(
    rules: Rules,
    field: impl fmt::Display,
    raw: Option<RawIdentifier<'_>>,
) -> Result<Identifier, Error> {
    let raw = present(&field, raw)?;
    rules.parse(raw).map_err(|rejection| rejected(field, &rejection))
}

fn present<'a>(
    field: impl fmt::Display,
    raw: Option<RawIdentifier<'a>>,
) -> Result<RawIdentifier<'a>, Error> {
    let missing = "an identifier is missing: set one of email, handle, phone, social and url";
    raw.ok_or_else(|| Error::invalid(Invalid::Identifier, field.to_string(), missing))
}

fn rejected(field: impl fmt::Display, rejection: &Rejection) -> Error {
    Error::invalid(Invalid::Identifier, field.to_string(), rejection.to_string())
}
