//! Moving the identities of a tenant to other rules of normalisation.

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
use crate::service::tenants::new_keys::NewKeys;
use crate::stores::{Consistency, OrderedReads, StoredRules, View};
use crate::tenant_cache::KnownTenant;
use polynym_identifier::{Identifier, IdentityKey};

/// Users in one step of a [`Renormalization`].
const USERS_PER_STEP: usize = 100;
/// The new keys in memory in a dry run.
const MAX_NEW_KEYS: usize = 1 << 20;
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
            new_keys: NewKeys::new(MAX_NEW_KEYS),
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
    new_keys: NewKeys,
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
    /// The users of the last step that cannot be read. They count as one identity each that cannot
    /// be moved.
    pub unreadable: Vec<LocalityId>,
    /// The last user that was read; none at the end.
    pub last: Option<LocalityId>,
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
    /// Moves the identities of the next users. A dry run with very many new keys reads the users
    /// several times, and counts them once.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::OutcomeUnknown`] and [`Error::Internal`], after which
    /// another run can continue.
    pub async fn step(&mut self) -> Result<&mut Progress, Error> {
        self.progress.problems.clear();
        self.progress.unreadable.clear();
        let scanned =
            self.directory.backend.search.scan(&self.tenant, self.after, USERS_PER_STEP).await?;
        let mut rest = scanned.users.iter();
        for user in rest.by_ref() {
            let record = match user {
                Ok(record) => record,
                Err(id) => {
                    self.pass_unreadable(*id);
                    continue;
                }
            };
            let version = self.directory.rules.version();
            let identities = record.user.identities.iter();
            for identity in identities.filter(|identity| identity.rules_version < version) {
                let form = renormalize::renormalized(identity, self.directory.rules);
                match form {
                    Some(form) if self.new_keys.is_later_range() => {
                        if let Some(problem) = self.check_new_keys(record, identity, form).await? {
                            self.progress.moved = self.progress.moved.saturating_sub(1);
                            self.add_problem(problem);
                        }
                    }
                    Some(form) => {
                        let outcome = self.move_one(record, identity).await;
                        self.record_outcome(record, identity, form, outcome).await?;
                    }
                    None if self.new_keys.is_later_range() => {}
                    None => self.progress.kept += 1,
                }
            }
            self.after = Some(record.id());
            self.progress.users += u64::from(!self.new_keys.is_later_range());
            if self.progress.problems.len() >= PROBLEMS_PER_STEP {
                break;
            }
        }

        let is_end = rest.len() == 0 && scanned.next.is_none();
        let is_last = is_end && !self.new_keys.next_range();
        self.progress.last = self.after.filter(|_| !is_last);
        if is_end {
            self.after = None;
        }
        Ok(&mut self.progress)
    }

    fn pass_unreadable(&mut self, id: LocalityId) {
        self.after = Some(id);
        if !self.new_keys.is_later_range() {
            self.progress.users += 1;
            self.progress.failed += 1;
            self.progress.unreadable.push(id);
        }
    }

    async fn move_one(&self, record: &Record, identity: &Identity) -> Result<(), Error> {
        let change = UserChange::Renormalize(identity.identifier.clone());
        let now = self.directory.now();
        let KnownTenant { since, policies, .. } = self.known.clone();
        let mutation = Mutation {
            tenant_since: since,
            policies,
            limits: self.directory.limits,
            rules: self.directory.rules,
            dry_run: self.dry_run,
            ..Mutation::of_user(self.tenant.clone(), record.id(), now, change)
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
        let error = match outcome {
            Ok(()) => {
                match self.check_new_keys(record, identity, renormalized).await? {
                    None => self.progress.moved += 1,
                    Some(problem) => self.add_problem(problem),
                }
                return Ok(());
            }
            Err(
                error @ (Error::Overloaded
                | Error::Unavailable(_)
                | Error::Outdated(_)
                | Error::OutcomeUnknown(_)
                | Error::Internal(_)),
            ) => return Err(error),
            // The identity was removed after it was read.
            Err(Error::UserNotFound | Error::NotOwned | Error::UserMerged { .. }) => return Ok(()),
            Err(error) => error,
        };
        let other = self.owner(&renormalized).await?;
        let (user, identifier) = (record.id(), identity.identifier.clone());
        self.add_problem(Problem { user, identifier, renormalized, other, error });
        Ok(())
    }

    fn add_problem(&mut self, problem: Problem) {
        self.progress.failed += 1;
        self.progress.problems.push(problem);
    }

    /// In a dry run, a problem if another identity would get the same new key, or that of its
    /// guard. The store reports the keys that are in use.
    async fn check_new_keys(
        &mut self,
        record: &Record,
        identity: &Identity,
        renormalized: Identifier,
    ) -> Result<Option<Problem>, Error> {
        if !self.dry_run {
            return Ok(None);
        }
        let (user, claims) = (record.id(), record.claims());
        let is_new = |key: &IdentityKey| {
            !claims.iter().any(|(claimed, claim)| claimed == key && claim.hold.is_none())
        };
        for (n, key) in self.keys(&renormalized).into_iter().enumerate() {
            if !is_new(&key) {
                continue;
            }
            let Some(other) = self.new_keys.insert(&key, user) else { continue };
            let found = self.find_identity(other, |other_identity, form| {
                (other, &other_identity.identifier) != (user, &identity.identifier)
                    && self.keys(form).contains(&key)
            });
            // Otherwise the other user has changed since.
            let Some((identifier, form)) = found.await? else { continue };
            let field = "identifier".to_owned();
            let error = match n > 0 || self.keys(&form)[0] != key {
                false => Error::IdentityTaken { owner: other, field },
                true => Error::IdentityConfusable { field },
            };
            let (other, identifier) = (Some((other, identifier)), identity.identifier.clone());
            return Ok(Some(Problem { user, identifier, renormalized, other, error }));
        }
        Ok(None)
    }

    /// The keys of an identifier: its own, then that of its guard.
    fn keys(&self, identifier: &Identifier) -> Vec<IdentityKey> {
        self.known.policies.claimed_keys(&self.tenant, identifier)
    }

    /// The user who has the key of an identifier or of its guard, with the identity that has it.
    async fn owner(
        &self,
        identifier: &Identifier,
    ) -> Result<Option<(LocalityId, Identifier)>, Error> {
        let keys = self.keys(identifier);
        let mut reads = self.directory.backend.reads.in_order().await?;
        let claims = reads.claims(&keys).await?;
        let Some(owner) = claims.into_iter().flatten().find_map(|claim| claim.owner) else {
            return Ok(None);
        };
        let has_key = |identity: &Identity| {
            self.keys(&identity.identifier).iter().any(|key| keys.contains(key))
        };
        let identity = self.identities(&mut *reads, owner).await?.into_iter().find(has_key);
        Ok(identity.map(|identity| (owner, identity.identifier)))
    }

    /// The identity of a user whose form by the current rules satisfies `is_wanted`, and this form.
    async fn find_identity(
        &self,
        user: LocalityId,
        is_wanted: impl Fn(&Identity, &Identifier) -> bool,
    ) -> Result<Option<(Identifier, Identifier)>, Error> {
        let rules = self.directory.rules;
        // The encoded form of users has no versions.
        let mut reads = self.directory.backend.reads.in_order().await?;
        let found = self.identities(&mut *reads, user).await?.into_iter().find_map(|identity| {
            let versions = (1..rules.version()).rev();
            let form = |version| {
                renormalize::renormalized_form(
                    &identity.identifier,
                    &identity.display,
                    version,
                    rules,
                )
            };
            let form = versions.filter_map(form).find(|form| is_wanted(&identity, form))?;
            Some((identity.identifier, form))
        });
        Ok(found)
    }

    /// The identities of a user; none if it does not exist.
    async fn identities(
        &self,
        reads: &mut dyn OrderedReads,
        user: LocalityId,
    ) -> Result<Vec<Identity>, Error> {
        let found = reads.get(&self.tenant, &[user], View::Basic).await?;
        let user = found.into_iter().next().transpose()?.flatten().map(|user| user.decode());
        let user = user.transpose().map_err(|error| Error::Internal(error.into()))?;
        Ok(user.map_or_else(Vec::new, |user| user.identities))
    }
}
