//! Look-ups of users by identifiers and by ids.

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
use crate::service::parse::parse_user_id;
use crate::stores::{ANSWER_BYTES, Consistency, ItemResult, View};
use crate::tenant_cache::KnownTenant;
use polynym_identifier::{Identifier, IdentityKey, Normalization, RawIdentifier, Rejection, Rules};

/// A user by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserById {
    /// The user, or the one that it was merged into.
    pub user: EncodedUser,
    /// The requested id, if it is that of a merged user.
    pub merged_from: Option<LocalityId>,
}

/// A reference to a user in a request.
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
    /// The freshness of the answer.
    pub consistency: Consistency,
    /// The greatest age of an answer from a cache; zero bypasses the caches.
    pub max_staleness: Duration,
    /// Whether to return disabled users.
    pub show_disabled: bool,
    /// The part of users that is read.
    pub view: View,
}

/// The error for an item of a batch that did not fit into the store's answer.
pub(crate) const FULL: Error = Error::AnswerFull { limit: ANSWER_BYTES };

/// Identifiers to normalise before yielding to other tasks: the costliest take half a millisecond
/// each.
pub(super) const YIELD_EVERY: usize = 32;

impl Directory {
    /// The owner of an identifier, and the number of reads.
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
        let LookedUp { policies, mut found, reads } =
            self.look_up(tenant, &[raw], options, |_| "identifier".to_owned()).await?;
        let owner = found.pop().ok_or(FULL)??;
        Ok((visible_owner(owner, &policies, options.show_disabled)?, reads))
    }

    /// The outcome for each of several identifiers, in order, and the number of reads.
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
        let owners = found
            .into_iter()
            .map(|found| visible_owner(found?, &policies, options.show_disabled))
            .collect();
        Ok((owners, reads))
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

    /// The outcome for each of several ids, in order.
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
        let ids: Vec<_> = user_ids
            .iter()
            .enumerate()
            .map(|(n, id)| parse_user_id(&format!("user_ids[{n}]"), id))
            .collect();
        let valid: Vec<_> = ids.iter().flatten().copied().collect();
        let mut users = self.get_present(context, &valid, view).await?.into_iter();
        Ok(ids
            .into_iter()
            .map(|id| id.and_then(|_| users.next().ok_or(FULL)??.ok_or(Error::UserNotFound)))
            .collect())
    }

    /// The users with these ids, in order. None for an id whose user does not exist or is past its
    /// purge time. Follows merges.
    pub(crate) async fn get_present(
        &self,
        context: &RequestContext<'_>,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<UserById>>, Error> {
        let is_present = |user: &EncodedUser| !user.state().is_purge_due(context.now);
        let chains = self.follow_merges(&context.tenant, ids, view).await?;
        Ok(chains
            .into_iter()
            .zip(ids)
            .map(|(chain, id)| {
                Ok(chain.user?.filter(is_present).map(|user| {
                    let merged_from = Some(*id).filter(|id| !user.has_id(*id));
                    UserById { user, merged_from }
                }))
            })
            .collect())
    }

    /// The identifier normalised by the store's rules, the version of the rules, and the key of the
    /// identifier in the tenant.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Unavailable`].
    pub async fn normalize(
        &self,
        context: &RequestContext<'_>,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<(Normalization, u32, IdentityKey), Error> {
        let raw = required("identifier", raw)?;
        let (rules, _) = self.stored_rules(Consistency::Eventual).await?;
        let normalization =
            rules.normalize(raw).map_err(|rejection| rejected("identifier", &rejection))?;
        let key = IdentityKey::new(context.tenant.as_str(), &normalization.identifier);
        Ok((normalization, rules.version(), key))
    }

    /// The identifier in canonical form, and the error that linking it to a user would return now.
    /// An empty `user_id` stands for a new user.
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
        let (rules, next_rules) = self.stored_rules(Consistency::Latest).await?;
        let identifier = parse(rules, "identifier", raw)?;
        if next_rules.is_some() {
            return Ok((identifier, Some(Error::RulesChanging)));
        }

        let policies = self.policies(&context.tenant).await?;
        let field = || "identifier".to_owned();
        let keys = policies.claimed_keys(&context.tenant, &identifier);
        let claims = self.backend.reads.claims(&keys).await?;
        let refusal = claims.into_iter().enumerate().find_map(|(n, claim)| {
            let (guard, rules_version) = (n > 0, rules.version());
            let wanted = Claim { owner: user, guard, hold: None, rules_version };
            claim?.refusal(&wanted, context.now, field)
        });
        let error = match refusal {
            Some(Error::IdentityTaken { owner, .. }) if Some(owner) == user => None,
            None if policies.reserves(&identifier) => {
                Some(Error::IdentityReserved { field: field() })
            }
            refusal => refusal,
        };

        Ok((identifier, error))
    }

    /// The outcome for each of several identifiers. `field` names them.
    async fn look_up(
        &self,
        tenant: &Tenant,
        raw: &[Option<RawIdentifier<'_>>],
        options: ResolveOptions,
        field: impl Fn(usize) -> String,
    ) -> Result<LookedUp, Error> {
        let consistency = options.consistency;
        loop {
            let rules = self.stored_rules(consistency).await?;
            let mut identifiers = Vec::with_capacity(raw.len());
            for (n, raw) in raw.iter().enumerate() {
                if n > 0 && n % YIELD_EVERY == 0 {
                    yield_now().await;
                }
                identifiers.push(IdentifierForms::new(rules, || field(n), *raw));
            }
            self.add_kept(rules.0, tenant, raw, &mut identifiers).await?;
            let has_valid = identifiers.iter().any(Result::is_ok);
            let policies = if has_valid { self.policies(tenant).await? } else { Arc::default() };
            let (found, reads) = self.owners(tenant, identifiers, options).await?;
            // A miss is certain only if the rules are still the same: otherwise the identity may
            // have moved to its form by other rules.
            let has_miss = found.iter().any(|found| matches!(found, Ok(None)));
            if !has_miss || self.stored_rules(consistency).await? == rules {
                return Ok(LookedUp { policies, found, reads });
            }
        }
    }

    /// Replaces the errors of rejected identifiers that users still have by their forms there.
    async fn add_kept(
        &self,
        rules: Rules,
        tenant: &Tenant,
        raw: &[Option<RawIdentifier<'_>>],
        identifiers: &mut [Result<IdentifierForms, Error>],
    ) -> Result<(), Error> {
        let rejected = identifiers.iter_mut().zip(raw).filter(|(forms, _)| forms.is_err());
        let (rejected, raw): (Vec<_>, Vec<_>) =
            rejected.filter_map(|(forms, raw)| Some((forms, (*raw)?))).unzip();
        let kept = self.kept_identifiers(rules, tenant, &raw).await?;
        for (forms, kept) in rejected.into_iter().zip(kept) {
            if let Some(current) = kept {
                *forms = Ok(IdentifierForms { current, next: None });
            }
        }
        Ok(())
    }

    /// The owners of identifiers, and the number of reads. While identities move to other rules, an
    /// identifier without an owner is looked up again by the next rules, linearizably: shards may
    /// show the move at different times.
    async fn owners(
        &self,
        tenant: &Tenant,
        identifiers: Vec<Result<IdentifierForms, Error>>,
        options: ResolveOptions,
    ) -> Result<(Vec<Result<Option<Found>, Error>>, u32), Error> {
        let key = |identifier: &Identifier| IdentityKey::new(tenant.as_str(), identifier);
        let keys: Vec<_> = identifiers.iter().flatten().map(|forms| key(&forms.current)).collect();
        let ResolveOptions { consistency, max_staleness, view, .. } = options;
        let lookups = &self.backend.lookups;
        let resolved = lookups.resolve(&keys, consistency, view, max_staleness).await?;
        let (mut found, mut reads) = (resolved.found.into_iter(), resolved.reads);
        let mut outcomes = Vec::with_capacity(identifiers.len());
        for forms in identifiers {
            let outcome = forms.and_then(|forms| Ok((found.next().ok_or(FULL)??, forms.next)));
            outcomes.push(match outcome {
                Ok((None, Some(next))) => {
                    let (keys, consistency) = ([key(&next)], Consistency::Linearizable);
                    let moved = lookups.resolve(&keys, consistency, view, Duration::ZERO).await?;
                    reads += moved.reads;
                    moved.found.into_iter().next().unwrap_or(Ok(None)).map_err(Error::from)
                }
                outcome => outcome.map(|(found, _)| found),
            });
        }

        Ok((outcomes, reads))
    }

    /// The policies of a tenant.
    pub(crate) async fn policies(&self, tenant: &Tenant) -> Result<Arc<Policies>, Error> {
        Ok(self.known_tenant(tenant).await?.policies)
    }

    /// A tenant, or the default that its first change creates.
    pub(crate) async fn known_tenant(&self, tenant: &Tenant) -> Result<KnownTenant, Error> {
        match self.tenants.get(&self.backend.tenants, tenant).await? {
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

/// The results of a look-up.
struct LookedUp {
    policies: Arc<Policies>,
    found: Vec<Result<Option<Found>, Error>>,
    reads: u32,
}

/// The canonical forms of one identifier.
struct IdentifierForms {
    /// By the current rules.
    current: Identifier,
    /// By the rules to which identities are moving, if that form differs.
    next: Option<Identifier>,
}

impl IdentifierForms {
    fn new(
        (current, next): (Rules, Option<Rules>),
        field: impl Fn() -> String,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Self, Error> {
        let current = parse(current, fmt::from_fn(|f| f.write_str(&field())), raw)?;
        let next = next.zip(raw).and_then(|(rules, raw)| rules.parse(raw).ok());
        Ok(Self { next: next.filter(|next| *next != current), current })
    }
}

/// The owner of an identifier, if the caller may see it.
fn visible_owner(
    owner: Option<Found>,
    policies: &Policies,
    show_disabled: bool,
) -> Result<Found, Error> {
    let found = owner
        .filter(|found| !policies.hide_unverified || found.is_verified())
        .ok_or(Error::IdentityNotFound)?;
    match found.user.state() {
        State::Active => Ok(found),
        State::Disabled if show_disabled => Ok(found),
        State::Disabled => Err(Error::UserDisabled),
        State::Deleted { .. } | State::Merged { .. } => Err(Error::IdentityNotFound),
    }
}

/// Parses the identifier in `field` by these rules.
///
/// # Errors
/// [`Error::Invalid`], also for a missing identifier.
pub(crate) fn parse(
    rules: Rules,
    field: impl fmt::Display,
    raw: Option<RawIdentifier<'_>>,
) -> Result<Identifier, Error> {
    let raw = required(&field, raw)?;
    rules.parse(raw).map_err(|rejection| rejected(field, &rejection))
}

fn required<'a>(
    field: impl fmt::Display,
    raw: Option<RawIdentifier<'a>>,
) -> Result<RawIdentifier<'a>, Error> {
    let missing = "an identifier is missing: set one of email, handle, phone, social and url";
    raw.ok_or_else(|| Error::invalid(Invalid::Identifier, field.to_string(), missing))
}

fn rejected(field: impl fmt::Display, rejection: &Rejection) -> Error {
    Error::invalid(Invalid::Identifier, field.to_string(), rejection.to_string())
}
