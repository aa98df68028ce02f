//! Importing users, many at once, each in a mutation of its own.

mod internals;
mod line;
pub mod raw;

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, Mode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use xxhash_rust::xxh3::xxh3_64;

use super::Directory;
use super::context::MutationCall;
use crate::directory::error::{Error, Invalid};
use crate::directory::model::imported_user::{Imported, OnConflict};
use crate::directory::model::policies::{Policies, PolicyUpdate};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::{IdempotencyKey, Mutation, MutationKind, UserChange};
use crate::directory::read_set::MutationReport;
use raw::RawUser;

/// Imports that may be under way in this process.
const MOST: usize = 8;
/// Lines of an import that are worked on at once.
const AT_ONCE: usize = 64;
const AT_ONCE_IN_FILE: usize = 512;
/// The name of the method in keys of requests.
const METHOD: &str = "ImportUsers";
/// The first pause before a line is tried again, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(2)];
/// The time for which a line is tried again while the store is away.
const PATIENCE: Duration = Duration::from_secs(30);

/// The permits of imports.
#[derive(Clone)]
pub struct Imports(Arc<Semaphore>);

impl Default for Imports {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

/// The options of a whole import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The tenant of all lines; none where each line names its own.
    pub tenant: Option<Tenant>,
    /// The treatment of lines with identities that cannot be linked.
    pub on_conflict: OnConflict,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether new users get ids that count up.
    pub sequential_ids: bool,
}

/// An import under way.
pub struct Import {
    directory: Arc<Directory>,
    caller: String,
    options: ImportOptions,
    /// The ids of new users, where they are not those of the directory.
    ids: Option<Generator>,
    _permit: OwnedSemaphorePermit,
}

/// The result of one line.
#[derive(Debug, Default)]
pub struct LineOutcome {
    /// Whether the line made something that was not there; none where it was rejected.
    pub is_new: Option<bool>,
    /// The reason of the rejection, or of each identity that was passed over.
    pub rejects: Vec<LineReject>,
}

/// A line that was rejected, or an identity that was passed over.
#[derive(Debug)]
pub struct LineReject {
    /// The position of the identity at fault, if it is about one.
    pub identity: Option<usize>,
    /// The fault.
    pub error: Error,
}

impl LineReject {
    fn of(error: Error) -> Self {
        let field = match &error {
            Error::Invalid { field, .. }
            | Error::IdentityTaken { field, .. }
            | Error::IdentityHeld { field, .. }
            | Error::IdentityConfusable { field }
            | Error::IdentityReserved { field } => field,
            _ => return Self { identity: None, error },
        };
        let position = field.strip_prefix("user.identities[").and_then(|rest| rest.split_once(']'));
        Self { identity: position.and_then(|(position, _)| position.parse().ok()), error }
    }
}

impl LineOutcome {
    /// The outcome of a line that was rejected.
    pub fn rejected(error: Error) -> Self {
        Self { is_new: None, rejects: vec![LineReject::of(error)] }
    }
}

impl Directory {
    /// The lines of an import to work on at once: a store in a file shares one sync among them,
    /// another one has a connection for each.
    pub fn import_concurrency(&self) -> usize {
        if self.file_store.is_some() { AT_ONCE_IN_FILE } else { AT_ONCE }
    }

    /// Begins an import.
    ///
    /// # Errors
    /// [`Error::Overloaded`] where too many are under way.
    pub fn begin_import(
        self: &Arc<Self>,
        caller: &str,
        options: ImportOptions,
    ) -> Result<Import, Error> {
        let permit = self.imports.0.clone().try_acquire_owned().map_err(|_| Error::Overloaded)?;
        let ids = options.sequential_ids.then(|| Generator::new(Mode::Sequential));
        let caller = caller.to_owned();
        Ok(Import { directory: self.clone(), caller, options, ids, _permit: permit })
    }
}

impl Import {
    /// The tenant of a line that names `own`, or none.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the line is of another tenant than the import.
    pub fn tenant(&self, own: &str) -> Result<Tenant, Error> {
        match &self.options.tenant {
            Some(tenant) if own.is_empty() || tenant.as_str() == own => Ok(tenant.clone()),
            Some(_) => {
                let message = "the line is of another tenant than the import";
                Err(Error::invalid(Invalid::Tenant, "user.tenant", message))
            }
            None => Tenant::parse(own),
        }
    }

    /// Imports a user. `content` is what the line says, by which it is known again.
    ///
    /// # Errors
    /// Those of the store, which are not about the line: the import is to end.
    pub async fn user(
        &self,
        tenant: Tenant,
        raw: &RawUser<'_>,
        content: u128,
    ) -> Result<LineOutcome, Error> {
        let (began, mut pause) = (Instant::now(), PAUSES[0]);
        loop {
            let error = match self.try_user(&tenant, raw, content).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) if !is_of_store(&error) => return Ok(LineOutcome::rejected(error)),
                Err(error) => error,
            };
            if began.elapsed() > PATIENCE || matches!(error, Error::Internal(_)) {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    async fn try_user(
        &self,
        tenant: &Tenant,
        raw: &RawUser<'_>,
        content: u128,
    ) -> Result<LineOutcome, Error> {
        let directory = &self.directory;
        let rules = directory.rules_to_change().await?;
        let context = directory.context(tenant.clone(), &self.caller, METHOD, "");
        let call = MutationCall { dry_run: self.options.dry_run, ..context.into() };
        let known = directory.tenant_to_change(&call).await?;
        let now = call.context.now;
        let parser = line::Parser { rules, now: now.time, tenant, policies: &known.policies };
        let parsed = parser.user(raw, self.options.on_conflict)?;
        let count = raw.identities.len();
        let limit = directory.limits.identities;
        if count > limit {
            return Err(Error::TooMany { what: "identities", limit, count });
        }

        let id = match parsed.id {
            Some(id) => id,
            None => self.ids.as_ref().unwrap_or(&directory.ids).next_id(),
        };
        let mut rejects = parsed.rejects;
        let kind = MutationKind::User(id, UserChange::Import(Box::new(parsed.user)));
        let request = self.request(tenant, content).filter(|_| !self.options.dry_run);
        let mutation =
            Mutation { rules, request, ..directory.mutation(call, kind, known.clone())? };
        let outcome = directory.store.mutate(mutation).await?;
        let MutationReport::Imported(Imported { is_new, skipped }) = outcome.report else {
            return Err(Error::Internal("an import without its report".into()));
        };

        rejects.extend(skipped.iter().map(|skipped| LineReject::of(skipped.error())));
        rejects.sort_by_key(|reject| reject.identity);
        Ok(LineOutcome { is_new: Some(is_new), rejects })
    }

    /// The name under which a line is remembered.
    fn request(&self, tenant: &Tenant, content: u128) -> Option<IdempotencyKey> {
        let key = format!("{tenant},{METHOD},{content:032x}");
        let request_hash = xxh3_64(&content.to_be_bytes());
        Some(IdempotencyKey { key, request_hash })
    }

    /// Imports a tenant: makes it with these policies. `update` sets all of them.
    ///
    /// # Errors
    /// Those of the store, which are not about the line: the import is to end.
    pub async fn tenant_record(
        &self,
        tenant: Tenant,
        update: PolicyUpdate,
    ) -> Result<LineOutcome, Error> {
        match self.try_tenant(tenant, update).await {
            Ok(is_new) => Ok(LineOutcome { is_new: Some(is_new), rejects: Vec::new() }),
            Err(error) if is_of_store(&error) => Err(error),
            Err(error) => Ok(LineOutcome::rejected(error)),
        }
    }

    async fn try_tenant(&self, tenant: Tenant, update: PolicyUpdate) -> Result<bool, Error> {
        update.check()?;
        let mut wanted = Policies::default();
        update.apply(&mut wanted, Timestamp::default());
        let wanted = wanted.with_changed_indexes();
        match self.directory.store.tenant(&tenant).await? {
            Some(there) if there.policies.with_changed_indexes() == wanted => return Ok(false),
            Some(_) => return Err(Error::TenantExists),
            None => {}
        }

        let context = self.directory.context(tenant, &self.caller, METHOD, "");
        let call = MutationCall { dry_run: self.options.dry_run, ..context.into() };
        self.directory.set_tenant(call, update).await?;
        Ok(true)
    }
}

/// Whether an error is about the store rather than about the line.
const fn is_of_store(error: &Error) -> bool {
    matches!(
        error,
        Error::Overloaded
            | Error::Unavailable(_)
            | Error::Outdated(_)
            | Error::OutcomeUnknown(_)
            | Error::Internal(_)
            | Error::ClockInDoubt
            | Error::RulesChanging
    )
}
