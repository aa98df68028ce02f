//! Calls of admins: tenants, holds, and renormalising a tenant.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::policies::PolicyUpdate;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::model::user::Identity;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, MutationKind, TenantChange, UserChange, renormalize};
use crate::service::Directory;
use crate::service::context::MutationCall;
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::page_token;
use crate::service::runs::Run;
use crate::service::tenant_cache::KnownTenant;
use crate::stores::{Consistency, StoredRules, View};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};

/// Users in one step of a [`Renormalization`].
const USERS_PER_STEP: usize = 100;

impl Directory {
    /// Ends the hold on an identifier. Returns its canonical form.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotHeld`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn release_hold(
        &self,
        call: MutationCall<'_>,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Identifier, Error> {
        let rules = self.rules_to_change().await?;
        let identifier = self.held_identifier(rules, &call.context.tenant, raw).await?;
        let kind = MutationKind::ReleaseHold(identifier.clone());
        self.execute_with_rules(rules, call, kind).await?;
        Ok(identifier)
    }

    /// A tenant with its policies.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn tenant(&self, name: &Tenant) -> Result<TenantRecord, Error> {
        self.backend.tenants.tenant(name).await?.ok_or(Error::TenantNotFound)
    }

    /// Up to `limit` tenants after `token`, by name, whose names start with `prefix`.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Unavailable`].
    pub async fn tenants(
        &self,
        prefix: &str,
        token: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        page_token::tenant(token)?;
        self.backend.tenants.tenants(prefix, token, limit).await
    }

    /// Up to `limit` attribute names of a tenant, after `token`.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn attribute_names(
        &self,
        tenant: &Tenant,
        token: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        self.known_tenant(tenant).await?;
        self.backend.tenants.attribute_names(tenant, token, limit).await
    }

    /// Changes a tenant's policies, and creates the tenant if it does not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::EtagMismatch`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn set_tenant(
        &self,
        call: MutationCall<'_>,
        update: PolicyUpdate,
    ) -> Result<TenantRecord, Error> {
        update.check()?;
        self.change_tenant(call, TenantChange::Set(update)).await
    }

    /// Changes a tenant.
    pub(crate) async fn change_tenant(
        &self,
        call: MutationCall<'_>,
        change: TenantChange,
    ) -> Result<TenantRecord, Error> {
        let (name, dry_run) = (call.context.tenant.clone(), call.dry_run);
        let kind = MutationKind::Tenant(change);
        let mutation = self.mutation(call.clone(), kind, KnownTenant::default())?;
        let began = Instant::now();
        let log = MutationLog::new(&call, None);
        let outcome = self.backend.mutations.mutate(mutation).await;
        log.write(&outcome);

        match outcome?.report {
            MutationReport::Tenant(tenant) => {
                if !dry_run {
                    self.tenants.learn_change(&name, Some(KnownTenant::from(&*tenant)), began);
                    self.queue_jobs(&tenant);
                }
                Ok(*tenant)
            }
            _ => Err(Error::Internal("a mutation of a tenant without its tenant".into())),
        }
    }

    /// The tenant of a mutation. The first mutation creates the tenant, unless only admins do, or
    /// it is a dry run.
    pub(crate) async fn tenant_to_change(
        &self,
        call: &MutationCall<'_>,
    ) -> Result<KnownTenant, Error> {
        let (name, dry_run) = (&call.context.tenant, call.dry_run);
        match self.tenants.get(&*self.backend.tenants, name).await? {
            Some(tenant) if tenant.is_deleted => Err(Error::TenantNotFound),
            Some(tenant) => Ok(tenant),
            None if !self.auto_creates(name) => Err(Error::TenantNotFound),
            None if dry_run => Ok(KnownTenant::default()),
            None => {
                let kind = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
                let mutation = Mutation::new(name.clone(), call.context.now.time, kind);
                let began = Instant::now();
                let MutationReport::Tenant(tenant) =
                    self.backend.mutations.mutate(mutation).await?.report
                else {
                    return Err(Error::Internal(
                        "a mutation of a tenant without its tenant".into(),
                    ));
                };
                let tenant = KnownTenant::from(&*tenant);
                self.tenants.learn_change(name, Some(tenant.clone()), began);
                Ok(tenant)
            }
        }
    }

    /// Begins to move a tenant's identities to the current rules, after the user in `token`.
    /// Nothing happens until [`Renormalization::step`].
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn renormalize(
        self: &Arc<Self>,
        tenant: Tenant,
        token: &str,
        dry_run: bool,
    ) -> Result<Renormalization, Error> {
        self.check_rules(dry_run).await?;
        // The default tenant may have no record yet.
        if tenant != Tenant::DEFAULT && self.backend.tenants.tenant(&tenant).await?.is_none() {
            return Err(Error::TenantNotFound);
        }
        let run = self.renormalizations.begin(&tenant)?;
        let known = self.known_tenant(&tenant).await?;
        Ok(Renormalization {
            directory: self.clone(),
            tenant,
            known,
            after: page_token::user(token)?,
            dry_run,
            new_keys: HashMap::new(),
            progress: Progress::default(),
            _run: run,
        })
    }

    /// Checks that the store has, or is getting, the rules of this directory. A dry run needs
    /// neither.
    async fn check_rules(&self, dry_run: bool) -> Result<(), Error> {
        let StoredRules { version, next } = self.backend.rules.rules(Consistency::Latest).await?;
        if dry_run || next.unwrap_or(version) == self.rules.version() {
            Ok(())
        } else {
            Err(Error::RulesChanging)
        }
    }
}

/// A run that moves the identities of a tenant to the current rules.
pub struct Renormalization {
    directory: Arc<Directory>,
    tenant: Tenant,
    known: KnownTenant,
    after: Option<LocalityId>,
    dry_run: bool,
    /// In a dry run, the keys that identities would get.
    new_keys: HashMap<IdentityKey, NewKey>,
    progress: Progress,
    _run: Run,
}

/// The progress of a [`Renormalization`].
#[derive(Debug, Default)]
pub struct Progress {
    /// Users that were read.
    pub users: u64,
    /// Identities that were moved, or would be.
    pub moved: u64,
    /// Identities that the current rules reject. They keep their form and their rules.
    pub kept: u64,
    /// Identities that cannot be moved.
    pub failed: u64,
    /// The identities of the last step that cannot be moved.
    pub problems: Vec<Problem>,
    /// The last user that was read; none at the end.
    pub last: Option<LocalityId>,
}

/// A key that an identity would get: its own, or that of its guard.
#[derive(Clone)]
struct NewKey {
    user: LocalityId,
    identifier: Identifier,
    is_guard: bool,
}

/// An identity that cannot be moved to the current rules.
#[derive(Debug)]
pub struct Problem {
    /// Its user.
    pub user: LocalityId,
    /// Its identifier.
    pub identifier: Identifier,
    /// The identifier that it would become.
    pub renormalized: Identifier,
    /// The identity that it would collide with: its user and its identifier.
    pub other: Option<(LocalityId, Identifier)>,
    /// The error.
    pub error: Error,
}

/// Shows only the users and the kind: identifiers are personal data.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, identifier, other, error, .. } = self;
        write!(f, "user {user}: its {} cannot be moved: {error}", identifier.kind())?;
        match other {
            Some((other, _)) => write!(f, "; the other user is {other}"),
            None => Ok(()),
        }
    }
}

impl Renormalization {
    /// Moves the identities of the next users.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::OutcomeUnknown`] and [`Error::Internal`], after which
    /// another run can continue.
    pub async fn step(&mut self) -> Result<&mut Progress, Error> {
        self.progress.problems.clear();
        let users =
            self.directory.backend.search.scan(&self.tenant, self.after, USERS_PER_STEP).await?;
        for record in &users {
            let version = self.directory.rules.version();
            let identities = record.user.identities.iter();
            for identity in identities.filter(|identity| identity.rules_version < version) {
                match renormalize::renormalized(identity, self.directory.rules) {
                    None => self.progress.kept += 1,
                    Some(form) => {
                        let outcome = self.move_one(record, identity).await;
                        self.record_outcome(record, identity, form, outcome).await?;
                    }
                }
            }
        }

        self.after = users.last().map(Record::id).or(self.after);
        self.progress.users += users.len() as u64;
        self.progress.last = self.after.filter(|_| users.len() == USERS_PER_STEP);
        Ok(&mut self.progress)
    }

    async fn move_one(&self, record: &Record, identity: &Identity) -> Result<(), Error> {
        let change = UserChange::Renormalize(identity.identifier.clone());
        let now = self.directory.now();
        let KnownTenant { since, policies, .. } = self.known.clone();
        let mutation = Mutation {
            tenant_since: since,
            clock_uncertain: now.clock_uncertain,
            policies,
            limits: self.directory.limits,
            rules: self.directory.rules,
            dry_run: self.dry_run,
            ..Mutation::of_user(self.tenant.clone(), record.id(), now.time, change)
        };

        self.directory.backend.mutations.mutate(mutation).await.map(drop)
    }

    async fn record_outcome(
        &mut self,
        record: &Record,
        identity: &Identity,
        renormalized: Identifier,
        outcome: Result<(), Error>,
    ) -> Result<(), Error> {
        let user = record.id();
        let outcome = match outcome {
            Ok(()) => self.check_new_keys(user, identity, &renormalized),
            Err(error) => Err((error, None)),
        };
        match outcome {
            Ok(()) => self.progress.moved += 1,
            Err((
                error @ (Error::Overloaded
                | Error::Unavailable(_)
                | Error::Outdated(_)
                | Error::OutcomeUnknown(_)
                | Error::Internal(_)),
                _,
            )) => return Err(error),
            // The identity was removed after it was read.
            Err((Error::UserNotFound | Error::NotOwned | Error::UserMerged { .. }, _)) => {}
            Err((error, other)) => {
                let other = match other {
                    Some(other) => Some(other),
                    None => self.owner(&renormalized).await?,
                };
                self.progress.failed += 1;
                let identifier = identity.identifier.clone();
                let problem = Problem { user, identifier, renormalized, other, error };
                self.progress.problems.push(problem);
            }
        }

        Ok(())
    }

    /// In a dry run, fails if another identity would get the same key, or that of its guard.
    /// Returns the error and the other identity.
    fn check_new_keys(
        &mut self,
        user: LocalityId,
        identity: &Identity,
        renormalized: &Identifier,
    ) -> Result<(), (Error, Option<(LocalityId, Identifier)>)> {
        if !self.dry_run {
            return Ok(());
        }
        let field = || "identifier".to_owned();
        for (n, key) in self.keys(renormalized).into_iter().enumerate() {
            let new = NewKey { user, identifier: identity.identifier.clone(), is_guard: n > 0 };
            let is_guard = new.is_guard;
            let Some(other) = self.new_keys.insert(key, new) else { continue };
            let error = match is_guard || other.is_guard {
                false => Error::IdentityTaken { owner: other.user, field: field() },
                true => Error::IdentityConfusable { field: field() },
            };
            return Err((error, Some((other.user, other.identifier))));
        }
        Ok(())
    }

    /// The keys of an identifier: its own, then that of its guard.
    fn keys(&self, identifier: &Identifier) -> Vec<IdentityKey> {
        let tenant = self.tenant.as_str();
        let guard = self.directory.rules.guard(identifier);
        let guard = guard.filter(|_| !self.known.policies.allow_lookalikes);
        let guard_key = guard.map(|guard| IdentityKey::of_guard(tenant, &guard));
        std::iter::once(IdentityKey::new(tenant, identifier)).chain(guard_key).collect()
    }

    /// The user who has the key of an identifier or of its guard, with the identity that has it.
    async fn owner(
        &self,
        identifier: &Identifier,
    ) -> Result<Option<(LocalityId, Identifier)>, Error> {
        let backend = &self.directory.backend;
        let claims = backend.reads.claims(&self.keys(identifier)).await?;
        let Some(owner) = claims.into_iter().flatten().find_map(|claim| claim.owner) else {
            return Ok(None);
        };
        let users = backend.lookups.get(&self.tenant, &[owner], View::Full).await?;
        let user = users.into_iter().next().transpose()?.flatten();
        let user = user.map(|user| user.decode()).transpose();
        let user = user.map_err(|error| Error::Internal(error.into()))?;
        let has_key = |own: &Identity| {
            let keys = self.keys(&own.identifier);
            self.keys(identifier).iter().any(|key| keys.contains(key))
        };
        let own = user.and_then(|user| user.identities.into_iter().find(has_key));
        Ok(own.map(|own| (owner, own.identifier)))
    }
}
