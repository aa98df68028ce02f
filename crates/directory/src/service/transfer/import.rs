//! Imports users, many at once, each in a mutation of its own.

mod find;
mod internals;
mod line;
mod outcome;
pub mod raw;
mod retries;
mod trial;

use std::sync::Arc;

use locality_uuid::{Generator, LocalityId, Mode};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Invalid};
use crate::model::imported_user::reimport::{LineField, Reimport};
use crate::model::imported_user::{Effect, ImportedUser, OnConflict};
use crate::model::tenant::Tenant;
use crate::model::tenant_record::ImportedTenant;
use crate::model::user::{State, User};
use crate::mutation::read_set::Outcome;
use crate::mutation::{IdempotencyKey, Mutation, MutationKind, TenantChange, UserChange};
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::purpose::Purpose;
use crate::trial::Trial;
use find::Step;
use outcome::{Draft, imported};
pub use outcome::{LineOutcome, LineReject, MergedLine};
use raw::{RawHold, RawUser};
use retries::Retries;
use trial::{content, foreseen, is_repeated};

/// Lines to parse before yielding to other tasks.
const YIELD_EVERY: usize = 32;
/// The name of the method in idempotency keys.
const METHOD: &str = "ImportUsers";
/// The most searches for the users of lines, if other callers change those users meanwhile.
const MAX_SEARCHES: usize = 4;

/// The options of a whole import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The tenant of all lines; none if each line names its own.
    pub tenant: Option<Tenant>,
    /// The policy for lines with identities that cannot be linked.
    pub on_conflict: OnConflict,
    /// The treatment of users who exist.
    pub reimport: Arc<Reimport>,
    /// Whether to check the lines without writing.
    pub dry_run: bool,
    /// Whether new users get sequential ids.
    pub sequential_ids: bool,
    /// The reason of the import; may be empty.
    pub reason: String,
    /// The id of the import, in the events of its users; may be empty.
    pub operation_id: String,
}

/// An import in progress.
pub struct Import {
    directory: Arc<Directory>,
    caller: String,
    options: ImportOptions,
    /// The generator of sequential ids; none to use the directory's.
    ids: Option<Generator>,
    /// The part of the lines' idempotency keys that names the import.
    key_scope: String,
    /// What the earlier lines would have written, if none is.
    trial: Option<Arc<Trial>>,
}

/// A line with a user.
pub struct Line<'l> {
    /// Its tenant.
    pub tenant: Tenant,
    /// The user.
    pub raw: RawUser<'l>,
    /// A hash of the line, which identifies it in a repeated import.
    pub content: u128,
}

impl Directory {
    /// Begins an import.
    ///
    /// # Errors
    /// [`Error::Invalid`] if its reason or id breaks a rule.
    pub fn begin_import(
        self: &Arc<Self>,
        caller: &str,
        options: ImportOptions,
    ) -> Result<Import, Error> {
        options.purpose().check_new(self.now().time)?;
        let ids = options.sequential_ids.then(|| Generator::new(Mode::Sequential));
        let (directory, caller) = (self.clone(), caller.to_owned());
        let key_scope = options.key_scope(&self.ids);
        let trial = options.dry_run.then(Arc::default);
        Ok(Import { directory, caller, options, ids, key_scope, trial })
    }
}

impl ImportOptions {
    /// The purpose of all changes.
    fn purpose(&self) -> Purpose<'_> {
        Purpose { reason: &self.reason, operation_id: &self.operation_id }
    }

    /// The part of the lines' idempotency keys that names the import. A line that only creates
    /// users is the same in all imports. One that may change its user is another one in each
    /// operation, in each call that belongs to none, and with other options.
    fn key_scope(&self, ids: &Generator) -> String {
        if !self.reimport.finds_users() {
            return String::new();
        }
        let options = format!("{:?}", (&*self.reimport, self.on_conflict));
        let options = xxh3_64(options.as_bytes());
        match &*self.operation_id {
            "" => format!("{},{options:016x}", ids.next_id()),
            operation => format!("{operation},{options:016x}"),
        }
    }
}

impl Import {
    /// The attribute by which lines find their users, if they do.
    pub fn key_attribute(&self) -> Option<&str> {
        match &self.options.reimport.key {
            Some(LineField::Attribute(name)) if self.options.reimport.finds_users() => Some(name),
            _ => None,
        }
    }

    /// Whether a line may change a user who exists.
    pub fn changes_users(&self) -> bool {
        self.options.reimport.finds_users()
    }

    /// Whether the lines are checked without writing.
    pub fn is_dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// The tenant of a line that names `own`, which may be empty.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the line belongs to another tenant than the import.
    pub fn tenant(&self, own: &str) -> Result<Tenant, Error> {
        match &self.options.tenant {
            Some(tenant) if own.is_empty() || tenant.as_str() == own => Ok(tenant.clone()),
            Some(_) => {
                let message = "the line belongs to another tenant than the import";
                Err(Error::invalid(Invalid::Tenant, "user.tenant", message))
            }
            None => Tenant::parse(own),
        }
    }

    /// Imports users, each in a mutation of its own.
    ///
    /// # Errors
    /// Those that end the import: of the store, or [`Error::TenantNotFound`] if all lines have one
    /// tenant.
    pub async fn users(&self, lines: &[Line<'_>]) -> Result<Vec<LineOutcome>, Error> {
        let (mut retries, mut searches) = (Retries::new(), 0);
        let mut outcomes: Vec<Option<LineOutcome>> = lines.iter().map(|_| None).collect();
        loop {
            let pending: Vec<_> = (0..lines.len()).filter(|n| outcomes[*n].is_none()).collect();
            let results = match self.try_users(pending.iter().map(|n| &lines[*n])).await {
                Ok(results) => results,
                Err(error) if self.ends(&error) => return Err(error),
                Err(error) => {
                    retries.wait(error).await?;
                    continue;
                }
            };
            searches += 1;
            let mut store_error = None;
            for (n, result) in pending.into_iter().zip(results) {
                match result {
                    Ok(outcome) => outcomes[n] = Some(outcome),
                    Err(error) if self.ends(&error) => return Err(error),
                    Err(error) if error.is_of_store() => store_error = Some(error),
                    Err(error) if self.has_moved(&error) && searches < MAX_SEARCHES => {}
                    Err(error) => outcomes[n] = Some(LineOutcome::rejected(error)),
                }
            }
            if let Some(error) = store_error {
                retries.wait(error).await?;
            }
            if outcomes.iter().all(Option::is_some) {
                return Ok(outcomes.into_iter().flatten().collect());
            }
        }
    }

    /// Whether an error is not of a line, but ends the import: so does one that all lines share.
    const fn ends(&self, error: &Error) -> bool {
        match error {
            Error::Internal(_) => true,
            Error::TenantNotFound => self.options.tenant.is_some(),
            _ => false,
        }
    }

    /// Whether a line may be about another user than the one that was found for it.
    fn has_moved(&self, error: &Error) -> bool {
        let is_other = matches!(error, Error::IdentityTaken { .. } | Error::UserExists);
        is_other && self.options.reimport.finds_users()
    }

    /// Imports each line, without retries.
    async fn try_users<'l>(
        &self,
        lines: impl Iterator<Item = &'l Line<'l>>,
    ) -> Result<Vec<Result<LineOutcome, Error>>, Error> {
        let (mut drafts, mut contents) = (Vec::new(), Vec::new());
        for (n, line) in lines.enumerate() {
            if n % YIELD_EVERY == YIELD_EVERY - 1 {
                tokio::task::yield_now().await;
            }
            drafts.push(self.draft(line).await);
            contents.push(content(&line.tenant, line.content));
        }

        let (mut results, mut mutations, mut mutated) = (Vec::new(), Vec::new(), Vec::new());
        for (step, content) in self.find_users(drafts).await?.into_iter().zip(&contents) {
            results.push(match step {
                Err(error) => Err(error),
                Ok(Step::Done(outcome)) => Ok(outcome),
                Ok(Step::Mutate(draft)) if is_repeated(self.trial.as_deref(), *content) => {
                    let (effect, rejects) = (Some(Effect::Unchanged), draft.rejects);
                    Ok(LineOutcome { effect, rejects, ..LineOutcome::default() })
                }
                Ok(Step::Mutate(draft)) => {
                    let Draft { mutation, rejects } = *draft;
                    let (merged, user) = (merged_line(&mutation), mutation.user_id());
                    mutated.push(results.len());
                    mutations.push(mutation);
                    Ok(LineOutcome { rejects, merged, user, ..LineOutcome::default() })
                }
            });
        }

        let mut outcomes = self.directory.backend.mutations.mutate_all(mutations).await.into_iter();
        for n in mutated {
            let missing = || Err(Error::Internal("a mutation without its outcome".into()));
            let outcome = outcomes.next().unwrap_or_else(missing);
            let begun = std::mem::replace(&mut results[n], Ok(LineOutcome::default()));
            results[n] = begun.and_then(|line| {
                let outcome = foreseen(self.trial.as_deref(), outcome?);
                self.trial.iter().for_each(|trial| trial.put_request(contents[n]));
                imported(line, outcome)
            });
        }
        Ok(results)
    }

    /// Whether each of these users was merged into no user who lists it, so that it can be purged
    /// by itself. Retries like [`Import::users`].
    ///
    /// # Errors
    /// Those of the store.
    pub async fn are_orphans(
        &self,
        tenant: &Tenant,
        users: &[LocalityId],
    ) -> Result<Vec<bool>, Error> {
        let mut retries = Retries::new();
        loop {
            match self.try_orphans(tenant, users).await {
                Err(error @ Error::Internal(_)) => return Err(error),
                Err(error) if error.is_of_store() => retries.wait(error).await?,
                // The tenant is being deleted, or is gone.
                Err(_) => return Ok(vec![false; users.len()]),
                Ok(orphans) => return Ok(orphans),
            }
        }
    }

    async fn try_orphans(&self, tenant: &Tenant, users: &[LocalityId]) -> Result<Vec<bool>, Error> {
        let call = MutationCall { dry_run: true, ..self.call(tenant.clone()) };
        let known = self.directory.tenant_to_change(&call).await?;
        let purge = |id: &LocalityId| {
            let kind = MutationKind::User(*id, UserChange::Purge);
            self.directory.mutation(call.clone(), kind, known.clone())
        };
        let purges = users.iter().map(purge).collect::<Result<_, _>>()?;
        let outcomes = self.directory.backend.mutations.mutate_all(purges).await;
        outcomes.into_iter().map(is_orphan).collect()
    }

    /// The mutation for a line, as if its user were new.
    async fn draft(&self, line: &Line<'_>) -> Result<Box<Draft>, Error> {
        let Line { tenant, raw, content } = line;
        let directory = &self.directory;
        let rules = directory.rules_to_change().await?;
        let call = self.call(tenant.clone());
        let known = directory.tenant_to_change(&call).await?;
        let now = call.context.now;
        let (policies, limits) = (&*known.policies, directory.limits);
        let parser = line::Parser { rules, now: now.time, tenant, policies, limits };
        let parsed = parser.user(raw, self.options.on_conflict)?;
        let id = match parsed.id {
            Some(id) => id,
            None => self.ids.as_ref().unwrap_or(&directory.ids).next_id(),
        };
        let user = ImportedUser { reimport: self.options.reimport.clone(), ..parsed.user };
        let request = self.request(tenant, *content).filter(|_| !self.options.dry_run);
        let kind = MutationKind::User(id, UserChange::Import(Box::new(user)));
        let trial = self.trial.clone();
        let mutation = Mutation { rules, request, trial, ..directory.mutation(call, kind, known)? };
        Ok(Box::new(Draft { mutation, rejects: parsed.rejects }))
    }

    /// The call for a line of this tenant.
    fn call(&self, tenant: Tenant) -> MutationCall<'_> {
        let context = self.directory.context(tenant, &self.caller, METHOD, "");
        let context = RequestContext { purpose: self.options.purpose(), ..context };
        MutationCall { dry_run: self.options.dry_run, ..context.into() }
    }

    /// The idempotency key of a line.
    fn request(&self, tenant: &Tenant, content: u128) -> Option<IdempotencyKey> {
        let key = format!("{tenant},{METHOD},{content:032x}{}", self.key_scope);
        let request_hash = xxh3_64(&content.to_be_bytes());
        Some(IdempotencyKey { key, request_hash })
    }

    /// Imports a tenant.
    ///
    /// # Errors
    /// Those of the store, which end the import.
    pub async fn tenant_record(
        &self,
        tenant: Tenant,
        imported: ImportedTenant,
    ) -> Result<LineOutcome, Error> {
        match self.try_tenant(tenant, imported).await {
            Ok(effect) => Ok(LineOutcome { effect: Some(effect), ..LineOutcome::default() }),
            Err(error) if error.is_of_store() => Err(error),
            Err(error) => Ok(LineOutcome::rejected(error)),
        }
    }

    /// Imports a hold on a key whose owner was purged.
    ///
    /// # Errors
    /// Those of the store, which end the import.
    pub async fn hold(&self, tenant: Tenant, raw: &RawHold<'_>) -> Result<LineOutcome, Error> {
        match self.try_hold(tenant, raw).await {
            Ok(outcome) => imported(LineOutcome::default(), outcome),
            Err(error) if error.is_of_store() => Err(error),
            Err(error) => Ok(LineOutcome::rejected(error)),
        }
    }

    async fn try_hold(&self, tenant: Tenant, raw: &RawHold<'_>) -> Result<Outcome, Error> {
        let rules = self.directory.rules_to_change().await?;
        let call = self.call(tenant.clone());
        let now = call.context.now.time;
        let known = self.directory.tenant_to_change(&call).await?;
        let (policies, limits) = (&*known.policies, self.directory.limits);
        let parser = line::Parser { rules, now, tenant: &tenant, policies, limits };
        let kind = MutationKind::ImportHold(parser.hold(raw)?);
        let trial = self.trial.clone();
        let mutation = Mutation { rules, trial, ..self.directory.mutation(call, kind, known)? };
        let outcome = self.directory.backend.mutations.mutate(mutation).await?;
        Ok(foreseen(self.trial.as_deref(), outcome))
    }

    async fn try_tenant(&self, tenant: Tenant, imported: ImportedTenant) -> Result<Effect, Error> {
        imported.policies.check()?;
        let now = self.directory.now().time;
        line::check_past(now, "tenant_record.create_time", imported.create_time)?;
        line::check_past(now, "tenant_record.update_time", imported.update_time)?;
        let is_new = self.directory.backend.tenants.tenant(&tenant).await?.is_none();
        self.directory.change_tenant(self.call(tenant), TenantChange::Import(imported)).await?;
        Ok(if is_new { Effect::Created } else { Effect::Unchanged })
    }
}

/// Whether a user is a merged one without a primary, by a dry run of its purge.
fn is_orphan(purge: Result<Outcome, Error>) -> Result<bool, Error> {
    let is_merged = |user: User| matches!(user.state, State::Merged { .. });
    match purge {
        Ok(outcome) => Ok(outcome.user.is_some_and(is_merged)),
        // Only merged users without a primary come as far as to the links of their own records.
        Err(Error::MergeDamaged { .. }) => Ok(true),
        Err(error) if error.is_of_store() => Err(error),
        Err(_) => Ok(false),
    }
}

/// The user of a line, if it was merged into another.
fn merged_line(mutation: &Mutation) -> Option<MergedLine> {
    let Some((user, UserChange::Import(imported))) = mutation.kind.user() else { return None };
    let is_merged = matches!(imported.state, State::Merged { .. }) && !mutation.dry_run;
    is_merged.then(|| MergedLine { tenant: mutation.tenant.clone(), user })
}
