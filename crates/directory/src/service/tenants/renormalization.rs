//! Moving the identities of a tenant to other rules of normalisation.

use std::collections::HashMap;
use std::sync::Arc;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::user::Identity;
use crate::mutation::{Mutation, UserChange, renormalize};
use crate::service::Directory;
use crate::service::page_token;
use crate::service::runs::Run;
use crate::service::tenant_cache::KnownTenant;
use crate::stores::{Consistency, StoredRules, View};
use polynym_identifier::{Identifier, IdentityKey};

/// Users in one step of a [`Renormalization`].
const USERS_PER_STEP: usize = 100;
/// Problems after which a step ends, so that its message fits a client.
const PROBLEMS_PER_STEP: usize = 200;

impl Directory {
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
        let mut rest = users.iter();
        for record in rest.by_ref() {
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
            self.after = Some(record.id());
            self.progress.users += 1;
            if self.progress.problems.len() >= PROBLEMS_PER_STEP {
                break;
            }
        }

        let has_more = rest.len() > 0 || users.len() == USERS_PER_STEP;
        self.progress.last = self.after.filter(|_| has_more);
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
        self.known.policies.claimed_keys(&self.tenant, identifier, self.directory.rules)
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
