//! Mutations: checks and normalises requests, and converts them to [`Mutation`]s.

use std::collections::BTreeMap;
use std::time::Duration;

use locality_uuid::LocalityId;

use super::request_hash::request_hash;
use crate::clock::Now;
use crate::error::{Error, Invalid};
use crate::model::attribute::Value;
use crate::model::event::Origin;
use crate::model::new_user::{NewIdentity, NewUser};
use crate::model::ownership::Takeover;
use crate::model::user::{User, Verification};
use crate::model::{attribute, new_user};
use crate::mutation::read_set::Outcome;
use crate::mutation::{IdempotencyKey, Mutation, MutationKind, UserChange};
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::lookup::read::parse;
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::parse::parse_user_id;
use crate::tenant_cache::KnownTenant;
use crate::text::{self, check_text, is_displayable};
use crate::update_mask::Update;
use polynym_identifier::{RawIdentifier, Rules};

/// The accepted lead of a caller's clock over the server's.
pub(crate) const SKEW: Duration = Duration::from_secs(60);

/// An identity in a request: the identifier as typed, and the caller's fields.
#[derive(Clone, Debug)]
pub struct RawIdentity<'a> {
    /// The identifier.
    pub identifier: Option<RawIdentifier<'a>>,
    /// The display name of an account at its provider; may be empty.
    pub display: &'a str,
    /// The time and the caller of its verification, if it is verified.
    pub verification: Option<Verification>,
    /// Whether it becomes the primary identity of its kind.
    pub primary: bool,
}

/// The counter of identities that verified ones displace: its name and help text.
pub const DISPLACED: (&str, &str) =
    ("polynym_displaced_identities_total", "Users who lost identities to a user who verified them");

impl Directory {
    /// Registers a user.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TooMany`], [`Error::IdentityTaken`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn create(
        &self,
        call: MutationCall<'_>,
        display_name: String,
        identities: &[RawIdentity<'_>],
        attributes: BTreeMap<String, Value>,
    ) -> Result<User, Error> {
        let display_name = text::name("user.display_name", &display_name)?.into_owned();
        attribute::check(&attributes, "user.attributes")?;
        let limit = self.limits.identities;
        if identities.len() > limit {
            return Err(Error::TooMany { what: "identities", limit, count: identities.len() });
        }

        let rules = self.rules_to_change().await?;
        let identities = identities
            .iter()
            .enumerate()
            .map(|(n, raw)| draft_identity(rules, &new_user::field(n), raw))
            .collect::<Result<_, _>>()?;
        let draft = NewUser { display_name, identities, attributes };
        check_times(&draft, &call.context.now)?;
        draft.check()?;

        self.mutate_with_rules(rules, call, self.ids.next_id(), UserChange::Create(draft)).await
    }

    /// Sets the display name and attributes of a user that `mask` selects.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::EtagMismatch`], [`Error::TooMany`],
    /// and those of [`crate::stores::Mutations::mutate`].
    pub async fn update(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
        mask: Option<&[String]>,
        display_name: String,
        attributes: BTreeMap<String, Value>,
    ) -> Result<User, Error> {
        let id = parse_user_id("user.user_id", user_id)?;
        let display_name = text::name("user.display_name", &display_name)?.into_owned();
        attribute::check(&attributes, "user.attributes")?;
        let update = Update::from_mask(mask, display_name, attributes)?;
        self.mutate(call, id, UserChange::Update(update)).await
    }

    /// Links an identity to a user.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::IdentityTaken`],
    /// [`Error::EtagMismatch`], [`Error::TooMany`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn link(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
        raw: Option<RawIdentifier<'_>>,
        display: &str,
        verified_by: Option<String>,
        primary: bool,
    ) -> Result<User, Error> {
        let id = parse_user_id("user_id", user_id)?;
        let verification = verified_by.map(|by| Verification { time: call.context.now.time, by });
        let rules = self.rules_to_change().await?;
        let raw = RawIdentity { identifier: raw, display, verification, primary };
        let draft = draft_identity(rules, "identifier", &raw)?;
        self.mutate_with_rules(rules, call, id, UserChange::Link(draft)).await
    }

    /// Moves an identity from one user to another. Returns the receiving user, to which the etag
    /// belongs.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::NotOwned`], [`Error::LastIdentity`],
    /// [`Error::PrimaryIdentity`], [`Error::EtagMismatch`], [`Error::TooMany`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn move_identity(
        &self,
        call: MutationCall<'_>,
        from: &str,
        to: &str,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<User, Error> {
        let from = parse_user_id("from_user_id", from)?;
        let to = parse_user_id("to_user_id", to)?;
        let rules = self.rules_to_change().await?;
        let identifier = self.named_identifier(rules, &call.context, "identifier", raw).await?;
        self.mutate_with_rules(rules, call, to, UserChange::Move(from, identifier)).await
    }

    /// Unlinks an identity from a user.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::NotOwned`], [`Error::EtagMismatch`],
    /// and those of [`crate::stores::Mutations::mutate`].
    pub async fn unlink(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<User, Error> {
        let id = parse_user_id("user_id", user_id)?;
        let rules = self.rules_to_change().await?;
        let identifier = self.named_identifier(rules, &call.context, "identifier", raw).await?;
        self.mutate_with_rules(rules, call, id, UserChange::Unlink(identifier)).await
    }

    /// Replaces an identity by a new one, atomically.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::NotOwned`] for the old identity,
    /// [`Error::IdentityTaken`] for the new one, [`Error::EtagMismatch`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn replace(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
        old: Option<RawIdentifier<'_>>,
        new: Option<RawIdentifier<'_>>,
    ) -> Result<User, Error> {
        let id = parse_user_id("user_id", user_id)?;
        let rules = self.rules_to_change().await?;
        let old = self.named_identifier(rules, &call.context, "old_identifier", old).await?;
        let raw = RawIdentity { identifier: new, display: "", verification: None, primary: false };
        let draft = draft_identity(rules, "new_identifier", &raw)?;
        self.mutate_with_rules(rules, call, id, UserChange::Replace(old, draft)).await
    }

    /// Marks an identity as verified `by` a service, or with `None` as unverified.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::NotOwned`], [`Error::EtagMismatch`],
    /// and those of [`crate::stores::Mutations::mutate`].
    pub async fn verify(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
        raw: Option<RawIdentifier<'_>>,
        by: Option<String>,
    ) -> Result<User, Error> {
        let id = parse_user_id("user_id", user_id)?;
        let rules = self.rules_to_change().await?;
        let identifier = self.named_identifier(rules, &call.context, "identifier", raw).await?;
        check_text("verified_by", by.as_deref().unwrap_or_default())?;
        let verification = by.map(|by| Verification { time: call.context.now.time, by });
        self.mutate_with_rules(rules, call, id, UserChange::Verify(identifier, verification)).await
    }

    /// Executes a change without arguments, such as one of the user's state.
    ///
    /// # Errors
    /// [`Error::Invalid`], and those of [`crate::stores::Mutations::mutate`].
    pub async fn change_state(
        &self,
        call: MutationCall<'_>,
        user_id: &str,
        change: UserChange,
    ) -> Result<User, Error> {
        self.mutate(call, parse_user_id("user_id", user_id)?, change).await
    }

    async fn mutate(
        &self,
        call: MutationCall<'_>,
        user_id: LocalityId,
        change: UserChange,
    ) -> Result<User, Error> {
        self.execute(call, user_id, change).await?.into_user()
    }

    async fn mutate_with_rules(
        &self,
        rules: Rules,
        call: MutationCall<'_>,
        user_id: LocalityId,
        change: UserChange,
    ) -> Result<User, Error> {
        let kind = MutationKind::User(user_id, change);
        self.execute_with_rules(rules, call, kind).await?.into_user()
    }

    pub(crate) async fn execute(
        &self,
        call: MutationCall<'_>,
        user_id: LocalityId,
        change: UserChange,
    ) -> Result<Outcome, Error> {
        self.execute_with_rules(Rules::PRESENT, call, MutationKind::User(user_id, change)).await
    }

    /// Executes a mutation whose identifiers `rules` normalised, and logs it.
    pub(crate) async fn execute_with_rules(
        &self,
        rules: Rules,
        call: MutationCall<'_>,
        kind: MutationKind,
    ) -> Result<Outcome, Error> {
        let user = kind.user();
        let is_creation = matches!(user, Some((_, UserChange::Create(_))));
        let log = MutationLog::new(&call, user.map(|(id, _)| id)).of_creation(is_creation);
        let outcome = self.mutate_store(rules, call, kind).await;
        log.write(&outcome);
        outcome
    }

    async fn mutate_store(
        &self,
        rules: Rules,
        call: MutationCall<'_>,
        kind: MutationKind,
    ) -> Result<Outcome, Error> {
        let tenant = self.tenant_to_change(&call).await?;
        let mutation = Mutation { rules, ..self.mutation(call, kind, tenant)? };
        let outcome = self.mutate_to_completion(mutation).await?;
        outcome.takeovers.iter().for_each(log_takeover);
        Ok(outcome)
    }

    pub(crate) fn mutation(
        &self,
        call: MutationCall<'_>,
        kind: MutationKind,
        tenant: KnownTenant,
    ) -> Result<Mutation, Error> {
        call.context.purpose.check_new(call.context.now.time)?;
        let request = request(&call, &kind)?.filter(|_| !call.dry_run);
        let etag = Some(call.etag).filter(|etag| !etag.is_empty()).map(str::to_owned);
        let MutationCall { context, dry_run, .. } = call;
        Ok(Mutation {
            tenant_since: tenant.since,
            etag,
            request,
            limits: self.limits,
            policies: tenant.policies,
            dry_run,
            origin: Origin {
                caller: context.caller.to_owned(),
                method: context.method.to_owned(),
                request_id: context.request_id.parse().ok(),
                reason: context.purpose.reason.to_owned(),
                operation_id: context.purpose.operation_id.to_owned(),
            },
            ..Mutation::new(context.tenant, context.now, kind)
        })
    }
}

fn log_takeover(Takeover { winner, loser }: &Takeover) {
    metrics::counter!(DISPLACED.0).increment(1);
    tracing::info!(%winner, %loser, "an identity went to a user who verified it");
}

/// Rejects verifications in the future. Clocks may differ by [`SKEW`].
fn check_times(draft: &NewUser, now: &Now) -> Result<(), Error> {
    let latest = now.time.plus(SKEW);
    let is_future =
        |identity: &NewIdentity| identity.verification.as_ref().is_some_and(|v| v.time > latest);
    match draft.identities.iter().position(is_future) {
        Some(n) => {
            let field = format!("user.identities[{n}].verify_time");
            Err(Error::invalid(Invalid::Field, field, "is in the future"))
        }
        None => Ok(()),
    }
}

fn draft_identity(rules: Rules, field: &str, raw: &RawIdentity<'_>) -> Result<NewIdentity, Error> {
    if let Some(verification) = &raw.verification {
        check_text(&field.replace("identifier", "verified_by"), &verification.by)?;
    }
    let display = display(field, raw)?;
    let (verification, primary) = (raw.verification.clone(), raw.primary);
    let identifier = parse(rules, field, raw.identifier)?;
    Ok(NewIdentity { identifier, display, verification, primary, rules_version: rules.version() })
}

/// The display form of an identity: the identifier as typed, or the account's display name at its
/// provider.
fn display(field: &str, raw: &RawIdentity<'_>) -> Result<String, Error> {
    if raw.display.is_empty() {
        let typed = raw.identifier.map(|raw| raw.typed().chars().filter(is_displayable).collect());
        return Ok(typed.unwrap_or_default());
    }

    let field = field.replace("identifier", "display");
    if !matches!(raw.identifier, Some(RawIdentifier::Social { .. })) {
        let message = "is for social accounts only: other identifiers are displayed as typed";
        return Err(Error::invalid(Invalid::Field, field, message));
    }
    Ok(text::name(&field, raw.display)?.into_owned())
}

fn request(call: &MutationCall<'_>, kind: &MutationKind) -> Result<Option<IdempotencyKey>, Error> {
    let key = idempotency_key(&call.context)?;
    Ok(key.map(|key| IdempotencyKey { key, request_hash: request_hash(call.etag, kind) }))
}

/// The idempotency key of a request, if it has an id. All spellings of a UUID give the same key.
/// The caller comes last, because it is the only free text.
pub(crate) fn idempotency_key(context: &RequestContext<'_>) -> Result<Option<String>, Error> {
    if context.request_id.is_empty() {
        return Ok(None);
    }

    // Programs that forget to generate a UUID send the nil UUID with every request.
    let parsed =
        context.request_id.parse().ok().filter(|id: &LocalityId| *id.as_bytes() != [0; 16]);
    let message = "a request_id is a UUID in its 36-character text form, other than the nil UUID";
    let id = parsed.ok_or_else(|| Error::invalid(Invalid::RequestId, "request_id", message))?;
    Ok(Some(format!("{},{},{id},{}", context.tenant, context.method, context.caller)))
}
