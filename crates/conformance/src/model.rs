//! Random operations against a model: a second, plain implementation of the directory's rules on
//! users in memory. It shares no code with the decisions of `directory`.

mod edits;
mod history;
mod merges;
mod rules;
mod state;
mod transfers;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, Claim, Consistency, Error, IdempotencyKey, Limits, Mutation, MutationKind,
    MutationReport, Outcome, Tenant, Timestamp, User, UserChange,
};
use polynym_identifier::{IdentityKey, RULES_VERSION};

use super::fixture::assertions::{ensure, equal};
use super::fixture::decoded;
use super::fixture::factory::{Failure, StoreFactory};
use super::fixture::{identifier, tenant};
use super::step::{Etag, NAMES, Step, TENANTS, policies};
use history::Owners;
use state::ReferenceModel;

const DAY: i64 = 86_400_000;

/// Executes `steps` on an empty store and on a model. After each step both must have given the same
/// answer and have the same users and claims.
///
/// # Errors
/// A [`Failure`] that names the step and the difference.
pub async fn run(factory: Arc<dyn StoreFactory>, steps: &[Step]) -> Result<(), Failure> {
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    let mut model = Model::at(Timestamp::now());
    let mut store = factory.open().await?;
    for (n, step) in steps.iter().enumerate() {
        if let Some(mutation) = model.mutation(step, &ids)? {
            let outcome = store.mutations.mutate(mutation.clone()).await;
            model
                .check(&mutation, step, outcome)
                .map_err(|e| format!("step {n}, {step:?}: {e}"))?;
        } else {
            drop(store);
            store = factory.open().await?;
        }
        model.compare(&store).await.map_err(|e| format!("after step {n}, {step:?}: {e}"))?;
    }

    model.compare_history(&store).await
}

/// The content of a store after some steps.
#[derive(Clone, Default)]
pub struct Model {
    state: ReferenceModel,
    /// All users ever created, in order, with their first etags.
    known: Vec<(LocalityId, String)>,
    /// Hash, user and time of each answered request.
    requests: HashMap<String, (u64, Option<LocalityId>, i64)>,
    now: i64,
    owners: Owners,
}

impl Model {
    /// The model of an empty store, whose clock begins at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { now: now.as_millis(), ..Self::default() }
    }

    /// The time of the last mutation.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    /// The same store later.
    pub fn later(self, now: Timestamp) -> Self {
        Self { now: self.now.max(now.as_millis()), ..self }
    }

    /// Whether both remember the same requests, which [`Self::compare`] cannot check.
    pub fn remembers_like(&self, other: &Self) -> bool {
        self.requests == other.requests
    }

    /// The mutation of a step in the present state; none if the step reopens the store.
    ///
    /// # Errors
    /// A [`Failure`] if the step has an invalid identifier.
    pub fn mutation(&mut self, step: &Step, ids: &Generator) -> Result<Option<Mutation>, Failure> {
        self.now += step.elapsed;
        let time = Timestamp::from_millis(self.now);
        let known = |n: usize| self.known.get(n % (self.known.len() + 1));
        let other = |n| known(n).map_or_else(|| ids.next_id(), |(id, _)| *id);
        let user = known(step.user).filter(|_| step.action.is_of_known_user());
        let user_id = user.map_or_else(|| ids.next_id(), |(id, _)| *id);
        let Some(kind) = step.action.kind(time, user_id, other)? else { return Ok(None) };
        let dry_run = step.dry_run && !matches!(kind, MutationKind::User(_, UserChange::Expire));
        let etag = user.and_then(|(id, first)| match step.etag {
            Etag::Any => None,
            Etag::Current => self.state.people.get(id).map(|person| person.user.etag()),
            Etag::First => Some(first.clone()),
            Etag::Wrong => Some("etag".to_owned()),
        });
        let tenant = tenant(TENANTS[step.tenant])?;
        let request = step.request.filter(|_| !dry_run).map(|(id, request_hash)| IdempotencyKey {
            key: format!("{tenant},{id}"),
            request_hash,
        });
        let limit = step.room;
        let limits = Limits {
            identities: limit,
            attributes: limit,
            holds: limit,
            merged: limit,
            ..Limits::default()
        };
        let policies = Arc::new(policies(step.policies));

        Ok(Some(Mutation {
            etag,
            request,
            limits,
            policies,
            dry_run,
            ..Mutation::new(tenant, time, kind)
        }))
    }

    /// Applies the mutation and fails unless the store's answer is the model's.
    fn check(
        &mut self,
        mutation: &Mutation,
        step: &Step,
        found: Result<Outcome, Error>,
    ) -> Result<(), Failure> {
        matches(&found, &self.apply(mutation, step))
    }

    /// Applies a mutation. Returns the answer that a store must give, or all correct refusals.
    ///
    /// # Errors
    /// The refusals.
    pub fn apply(&mut self, mutation: &Mutation, step: &Step) -> Result<Outcome, Vec<Error>> {
        self.now = mutation.now.time.as_millis();
        if let Some(remembered) = self.remembered(mutation) {
            return remembered.map_err(|error| vec![error]);
        }

        let (state, outcome) = self.state.after(mutation, &step.action)?;
        if mutation.dry_run {
            return Ok(outcome);
        }

        self.owners.record(&self.state, &state, mutation.now.time);
        self.state = state;
        let subject = match mutation.user_change() {
            Some(UserChange::Unmerge(secondary)) => Some(*secondary),
            _ => mutation.user_id(),
        };
        if let Some(request) = &mutation.request {
            self.requests.insert(request.key.clone(), (request.request_hash, subject, self.now));
        }

        if let (Some(UserChange::Create(_)), Some(user)) = (mutation.user_change(), &outcome.user) {
            self.known.push((user.id, user.etag()));
        }
        Ok(outcome)
    }

    /// The answer to a repeated request.
    fn remembered(&self, mutation: &Mutation) -> Option<Result<Outcome, Error>> {
        let request = mutation.request.as_ref()?;
        let (request_hash, id, time) = self.requests.get(&request.key)?;
        if self.now - time >= DAY {
            return None;
        }

        if *request_hash != request.request_hash {
            return Some(Err(Error::RequestIdReused));
        }
        let answer =
            |user, report| Outcome { user, report, takeovers: Vec::new(), foreseen: Vec::new() };
        let Some(change) = mutation.user_change() else {
            return Some(Ok(answer(None, MutationReport::Nothing)));
        };

        let Some(id) = *id else { return Some(Err(Error::UserNotFound)) };
        if *change == UserChange::Purge {
            return Some(Ok(answer(None, MutationReport::Purged(vec![id]))));
        }

        let Ok(person) = self.state.present(id, &mutation.tenant, mutation.now.time) else {
            return Some(Err(Error::UserNotFound));
        };
        let report = match change {
            UserChange::Unmerge(_) => MutationReport::NotRestored(person.not_restored.clone()),
            _ => MutationReport::Nothing,
        };

        Some(Ok(answer(Some(person.user.clone()), report)))
    }

    /// Fails unless the store has exactly the users, claims and times that the model has.
    ///
    /// # Errors
    /// A [`Failure`] that names the first difference.
    pub async fn compare(&self, store: &Backend) -> Result<(), Failure> {
        let ids: Vec<_> = self.known.iter().map(|(id, _)| *id).collect();
        for name in TENANTS {
            let tenant = tenant(name)?;
            let user =
                |id: &LocalityId| self.state.people.get(id).map(|person| person.user.clone());
            let users: Vec<_> =
                ids.iter().map(|id| user(id).filter(|user| user.tenant == tenant)).collect();
            equal(&decoded::users(store, &tenant, &ids).await?, &users, "the users")?;
            self.compare_owners(store, &tenant, &users).await?;
            let mut existing: Vec<_> = users.into_iter().flatten().collect();
            existing.sort_by_key(|user| user.id);
            let records = store.search.scan(&tenant, None, ids.len() + 1).await?;
            let scanned: Vec<_> = records.into_readable().map(|record| record.user).collect();
            equal(&scanned, &existing, "the users of a scan")?;
            self.compare_claims(store, &tenant).await?;
        }

        let due = self.state.people.values().filter(|person| person.expires_at().is_some());
        let due: BTreeSet<_> =
            due.map(|person| (person.user.tenant.clone(), person.user.id)).collect();
        let found: BTreeSet<_> = decoded::expired_users(store, Timestamp::MAX, ids.len() + 1)
            .await?
            .into_iter()
            .collect();

        equal(&found, &due, "the users with an expiry time")
    }

    /// Fails unless the store has all events of all users and each former owner of each key.
    ///
    /// # Errors
    /// A [`Failure`] that names the first difference.
    pub async fn compare_history(&self, store: &Backend) -> Result<(), Failure> {
        let ids: Vec<_> = self.known.iter().map(|(id, _)| *id).collect();
        history::compare_events(&self.state, store, &ids).await?;
        self.owners.compare(&self.state, store, self.now()).await
    }

    async fn compare_owners(
        &self,
        store: &Backend,
        tenant: &Tenant,
        users: &[Option<User>],
    ) -> Result<(), Failure> {
        let names = NAMES.iter().map(|name| identifier(name)).collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<_> =
            names.iter().map(|name| IdentityKey::new(tenant.as_str(), name)).collect();
        let owner = |name| users.iter().flatten().find(|user| user.identity(name).is_some());
        let owners: Vec<_> = names.iter().map(|name| owner(name).cloned()).collect();
        equal(&decoded::owners(store, &keys, Consistency::Latest).await?, &owners, "the owners")
    }

    /// Fails unless the claims are equal, apart from those whose holds have ended.
    async fn compare_claims(&self, store: &Backend, tenant: &Tenant) -> Result<(), Failure> {
        let mut keys = Vec::new();
        for text in NAMES {
            let name = identifier(text)?;
            keys.push(IdentityKey::new(tenant.as_str(), &name));
            keys.extend(name.guard().map(|guard| IdentityKey::of_guard(tenant.as_str(), &guard)));
        }

        let is_over = |claim: &Claim| claim.hold.is_some_and(|until| until.as_millis() <= self.now);
        let found = store.reads.claims(&keys).await?;
        equal(&found.len(), &keys.len(), "claims")?;
        for (key, claim) in keys.iter().zip(found) {
            let found = claim.filter(|claim| !is_over(claim));
            let wanted = self.state.claim(key, self.now).map(|(owner, guard, hold)| {
                let rules_version = RULES_VERSION;
                Claim { owner, guard, hold, rules_version }
            });
            equal(&found, &wanted, &format!("the claim on {}", key.as_str()))?;
        }

        Ok(())
    }
}

/// Fails unless the outcome is the wanted one or one of the refusals.
///
/// # Errors
/// A [`Failure`] with both.
pub fn matches(
    found: &Result<Outcome, Error>,
    wanted: &Result<Outcome, Vec<Error>>,
) -> Result<(), Failure> {
    let holds = match (found, wanted) {
        (Ok(found), Ok(wanted)) => found == wanted,
        (Err(found), Err(wanted)) => {
            wanted.iter().any(|wanted| format!("{wanted:?}") == format!("{found:?}"))
        }
        _ => false,
    };
    ensure(holds, format!("the store answered {found:?}, the model {wanted:?}"))
}
