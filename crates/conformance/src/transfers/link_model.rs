//! Random imports, merges and purges of users that name each other, compared with a model of what
//! each record says. The model shares no code with the decisions of `directory`.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use polynym_directory::{
    ConflictPolicy, Error, ImportedUser, Mutation, MutationReport, NewUser, Outcome, Policies,
    State, Tenant, UserChange, UserInternals,
};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::random::Random;
use crate::fixture::{Fixture, no_holds};

/// The steps of a run, and the most until each kind of refusal has occurred.
const STEPS: usize = 150;
const MAX_STEPS: usize = 1_000;
/// The ids: few, so that records name each other.
const IDS: usize = 6;
const TENANTS: [&str; 2] = ["default", "other"];

/// The record of a user in the model.
#[derive(Clone, Debug)]
struct ModelRecord {
    tenant: usize,
    into: Option<usize>,
    listed: Vec<usize>,
}

/// The records by the numbers of their users.
#[derive(Clone, Default, Debug)]
struct Records(BTreeMap<usize, ModelRecord>);

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    Invalid,
    Exists,
    NotFound,
    Merged,
    NotMerged,
    Damaged,
}

impl Refusal {
    /// The number of kinds.
    const KINDS: usize = 6;

    fn of(error: &Error) -> Result<Self, Failure> {
        Ok(match error {
            Error::Invalid { .. } => Self::Invalid,
            Error::UserExists => Self::Exists,
            Error::UserNotFound => Self::NotFound,
            Error::UserMerged { .. } => Self::Merged,
            Error::NotMerged | Error::UndoExpired => Self::NotMerged,
            Error::MergeDamaged { .. } => Self::Damaged,
            other => return Err(format!("an unexpected refusal: {other:?}").into()),
        })
    }
}

impl Records {
    fn of_tenant(&self, user: usize, tenant: usize) -> Option<&ModelRecord> {
        self.0.get(&user).filter(|says| says.tenant == tenant)
    }

    /// The users from `user` up to the end of its merges; none if they leave the tenant, end at no
    /// user, or lead back.
    fn chain(&self, user: usize) -> Option<Vec<usize>> {
        let (mut chain, tenant) = (vec![user], self.0.get(&user)?.tenant);
        while let Some(into) = self.of_tenant(*chain.last()?, tenant)?.into {
            if chain.contains(&into) {
                return None;
            }
            chain.push(into);
        }
        Some(chain)
    }

    /// Whether the merges of `listed` lead to `user` over users that it lists, and, with `waits`,
    /// over those that do not exist yet.
    fn leads(&self, listed: usize, user: usize, says: &ModelRecord, waits: bool) -> bool {
        let mut at = BTreeSet::from([listed]);
        let mut last = listed;
        loop {
            let Some(other) = self.0.get(&last) else { return waits };
            match other.into.filter(|_| other.tenant == says.tenant) {
                Some(into) if into == user => return true,
                Some(into) if says.listed.contains(&into) && at.insert(into) => last = into,
                _ => return false,
            }
        }
    }

    /// The users that were merged into one, and itself.
    fn merged(&self, user: usize) -> Result<BTreeSet<usize>, Refusal> {
        let says = &self.0[&user];
        let mut listed = says.listed.iter().filter_map(|id| self.0.get(id));
        if listed.any(|other| other.tenant != says.tenant) {
            return Err(Refusal::Damaged);
        }
        let merged = says.listed.iter().copied().filter(|id| self.leads(*id, user, says, false));
        Ok(merged.chain([user]).collect())
    }

    fn import(&mut self, user: usize, says: &ModelRecord) -> Result<(), Refusal> {
        if let Some(existing) = self.0.get(&user) {
            let is_same = (existing.tenant, existing.into) == (says.tenant, says.into);
            return if is_same { Ok(()) } else { Err(Refusal::Exists) };
        }
        let distinct: BTreeSet<_> = says.listed.iter().chain([&user]).chain(&says.into).collect();
        let named = says.listed.len() + 1 + usize::from(says.into.is_some());
        let are_listed_sound = says.listed.iter().all(|id| {
            self.0.get(id).is_none_or(|other| other.tenant == says.tenant)
                && self.leads(*id, user, says, true)
        });
        if distinct.len() < named || !are_listed_sound {
            return Err(Refusal::Invalid);
        }
        let mut next = says.into;
        let mut seen = BTreeSet::from([user]);
        while let Some(into) = next {
            let Some(primary) = self.0.get(&into) else { break };
            let lists_it = primary.tenant == says.tenant && primary.listed.contains(&user);
            if !lists_it || !seen.insert(into) {
                return Err(Refusal::Invalid);
            }
            next = primary.into;
        }
        self.0.insert(user, says.clone());
        Ok(())
    }

    /// The user if it can be changed.
    fn changeable(&self, user: usize, tenant: usize) -> Result<ModelRecord, Refusal> {
        let says = self.of_tenant(user, tenant).ok_or(Refusal::NotFound)?;
        if says.into.is_some() { Err(Refusal::Merged) } else { Ok(says.clone()) }
    }

    fn purge(&mut self, user: usize, tenant: usize) -> Result<BTreeSet<usize>, Refusal> {
        let says = self.of_tenant(user, tenant).ok_or(Refusal::NotFound)?;
        let is_part = self.chain(user).is_some_and(|chain| {
            let (root, merged) = (chain[chain.len() - 1], &chain[..chain.len() - 1]);
            merged.iter().all(|id| self.0[&root].listed.contains(id))
        });
        if says.into.is_some() && is_part {
            return Err(Refusal::Merged);
        }
        let purged = self.merged(user)?;
        self.0.retain(|id, _| !purged.contains(id));
        Ok(purged)
    }

    fn merge(&mut self, primary: usize, secondary: usize, tenant: usize) -> Result<(), Refusal> {
        if primary == secondary {
            return Err(Refusal::Invalid);
        }
        let mut after = self.changeable(primary, tenant)?;
        let mut merged = self.changeable(secondary, tenant)?;
        self.merged(secondary)?;
        for id in [&[secondary], merged.listed.as_slice()].concat() {
            if !after.listed.contains(&id) {
                after.listed.push(id);
            }
        }
        merged.into = Some(primary);
        self.0.extend([(primary, after), (secondary, merged)]);
        Ok(())
    }

    /// Undoing is refused: no merge of this run can be undone.
    fn unmerge(&self, primary: usize, secondary: usize, tenant: usize) -> Result<(), Refusal> {
        self.changeable(primary, tenant)?;
        self.of_tenant(secondary, tenant).ok_or(Refusal::NotFound)?;
        Err(Refusal::NotMerged)
    }

    fn repair(&mut self, user: usize, tenant: usize) {
        let Some(says) = self.of_tenant(user, tenant).cloned() else { return };
        let is_sound = |id: &usize| {
            self.0.get(id).is_none_or(|other| other.tenant == tenant)
                && self.leads(*id, user, &says, true)
        };
        let listed = says.listed.iter().copied().filter(is_sound).collect();
        self.0.insert(user, ModelRecord { listed, ..says });
    }
}

struct Run {
    f: Fixture,
    ids: Vec<LocalityId>,
    records: Records,
    random: Random,
    /// The refusals so far.
    refused: BTreeSet<Refusal>,
    /// The most users of a purge so far.
    purged: usize,
}

impl Run {
    fn tenant(&self, tenant: usize) -> Result<Tenant, Failure> {
        Ok(Tenant::parse(TENANTS[tenant])?)
    }

    async fn apply(
        &self,
        tenant: usize,
        user: usize,
        change: UserChange,
    ) -> Result<Result<Outcome, Refusal>, Failure> {
        let policies = Policies { undo_window: std::time::Duration::ZERO, ..no_holds() };
        let mutation = self.f.mutation(self.ids[user], change);
        let (tenant, policies) = (self.tenant(tenant)?, policies.into());
        Ok(match self.f.apply(Mutation { tenant, policies, ..mutation }).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(Refusal::of(&error)?),
        })
    }

    async fn step(&mut self) -> Result<(), Failure> {
        let (user, other) = (self.random.below(IDS), self.random.below(IDS));
        let tenant = usize::from(self.random.below(3) == 0);
        let (found, wanted) = match self.random.below(14) {
            0..4 => {
                let into = (self.random.below(3) == 0).then_some(other);
                let count = self.random.below(3);
                let listed = (0..count).map(|_| self.random.below(IDS)).collect();
                let says = ModelRecord { tenant, into, listed };
                let found = self.apply(tenant, user, self.line(&says)).await?.map(drop);
                (found, self.records.import(user, &says))
            }
            4..6 if self.records.0.contains_key(&user) => return Ok(()),
            4..6 => {
                let create = UserChange::Create(NewUser::default());
                let found = self.apply(tenant, user, create).await?.map(drop);
                self.records.0.insert(user, ModelRecord { tenant, into: None, listed: Vec::new() });
                (found, Ok(()))
            }
            6..9 => {
                let merge = UserChange::Merge(self.ids[other], ConflictPolicy::PrimaryWins);
                let found = self.apply(tenant, user, merge).await?.map(drop);
                (found, self.records.merge(user, other, tenant))
            }
            9 => {
                let unmerge = UserChange::Unmerge(self.ids[other]);
                let found = self.apply(tenant, user, unmerge).await?.map(drop);
                (found, self.records.unmerge(user, other, tenant))
            }
            10 => {
                let found = self.apply(tenant, user, UserChange::RemoveMergeFaults).await?;
                self.records.repair(user, tenant);
                (found.map(drop), Ok(()))
            }
            _ => {
                let found = self.apply(tenant, user, UserChange::Purge).await?;
                let wanted = self.records.purge(user, tenant);
                if let (Ok(found), Ok(wanted)) = (&found, &wanted) {
                    self.purged = self.purged.max(wanted.len());
                    let mut ids: Vec<_> = wanted.iter().map(|n| self.ids[*n]).collect();
                    ids.sort();
                    equal(&found.report, &MutationReport::Purged(ids), "the purged users")?;
                }
                (found.map(drop), wanted.map(drop))
            }
        };
        self.refused.extend(found.err());
        equal(&found, &wanted, &format!("user {user}, other {other}: {:?}", self.records))?;
        self.compare(user, tenant).await
    }

    fn line(&self, says: &ModelRecord) -> UserChange {
        let id = |n: &usize| self.ids[*n];
        let into = says.into.as_ref().map(id);
        let merged = says.listed.iter().map(id).collect();
        UserChange::Import(Box::new(ImportedUser {
            has_id: true,
            state: into.map_or(State::Active, |into| State::Merged { into }),
            internals: Some(UserInternals { merged, ..UserInternals::default() }),
            ..ImportedUser::default()
        }))
    }

    /// Fails unless the store has these users, and `user` these inboxes.
    async fn compare(&self, user: usize, tenant: usize) -> Result<(), Failure> {
        for tenant in 0..TENANTS.len() {
            let found = self.f.store.search.scan(&self.tenant(tenant)?, None, IDS + 1).await?;
            let found: BTreeSet<_> = found.readable().map(|record| record.id()).collect();
            let users = self.records.0.iter().filter(|(_, says)| says.tenant == tenant);
            equal(&found, &users.map(|(n, _)| self.ids[*n]).collect(), "the users of a tenant")?;
        }

        let inboxes = self.f.store.inboxes.inboxes(&self.tenant(tenant)?, self.ids[user]).await;
        let exists = self.records.of_tenant(user, tenant).is_some();
        let wanted = exists.then(|| self.records.merged(user)).transpose();
        match (inboxes, wanted) {
            (Ok(found), Ok(wanted)) => {
                let found = found.map(|ids| ids.into_iter().collect::<BTreeSet<_>>());
                let wanted = wanted.map(|users| users.iter().map(|n| self.ids[*n]).collect());
                equal(&found, &wanted, "the inboxes")
            }
            (Err(Error::MergeDamaged { .. }), Err(Refusal::Damaged)) => Ok(()),
            other => ensure(false, format!("the inboxes of {user}: {other:?}")),
        }
    }
}

pub async fn links_agree_with_a_model(f: Fixture) -> Result<(), Failure> {
    let ids = (0..IDS).map(|_| f.ids.next_id()).collect();
    let (records, refused) = Default::default();
    let mut run = Run { f, ids, records, random: Random(7), refused, purged: 0 };
    for n in 0..MAX_STEPS {
        run.step().await.map_err(|failure| format!("step {n}: {failure}"))?;
        if n >= STEPS && run.refused.len() == Refusal::KINDS && run.purged > 2 {
            return Ok(());
        }
    }
    let Run { refused, purged, .. } = run;
    Err(format!("the run was too tame: it refused {refused:?}, and purged {purged} at once").into())
}
