//! Operations that are undone in random histories, compared with a model that remembers what each
//! user was before each change.

mod model;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::mutation::bulk::BulkPart;
use polynym_directory::{
    Backend, Clock, Directory, Error, Limits, Mutation, Record, StoreClock, Tenant, Timestamp,
};

use crate::fixture::Fixture;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::{Failure, StoreFactory};
use crate::fixture::random::Random;
use model::{Entry, Expected, Histories, Visible};

/// The histories of a case.
const SAMPLE: u64 = 10;

/// The users of a tenant.
type Users = BTreeMap<LocalityId, Record>;

/// The case of the suite: a sample of histories.
///
/// # Errors
/// A [`Failure`] with the history and the difference.
pub async fn undone_operations_agree_with_a_model(f: Fixture) -> Result<(), Failure> {
    let tally = run(&f, 0..SAMPLE).await?;
    ensure(tally.is_wild(), format!("the histories were too tame: {tally:?}"))
}

/// Runs the histories of these seeds on one store.
///
/// # Errors
/// A [`Failure`] with the seed and the difference.
pub async fn agree(factory: Arc<dyn StoreFactory>, seeds: Range<u64>) -> Result<Tally, Failure> {
    run(&Fixture::new(factory).await?, seeds).await
}

async fn run(f: &Fixture, seeds: Range<u64>) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for seed in seeds {
        let run = History::new(f, seed)?.run().await;
        tally.add(&run.map_err(|failure| format!("history {seed}: {failure}"))?);
    }
    Ok(tally)
}

/// What happened in histories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Changes that had an effect.
    pub changes: u64,
    /// Operations that were undone.
    pub undone: u64,
    /// Users that became what they were before.
    pub reverted: u64,
    /// Users that stayed as they were, with a reason.
    pub kept: u64,
    /// Users that were deleted, because an operation had created them.
    pub deleted: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.changes += other.changes;
        self.undone += other.undone;
        self.reverted += other.reverted;
        self.kept += other.kept;
        self.deleted += other.deleted;
    }

    const fn is_wild(&self) -> bool {
        self.changes > 50 && self.reverted > 10 && self.kept > 10 && self.deleted > 2
    }
}

/// A clock of the store that always agrees with the machine's.
struct Agreeing;

impl StoreClock for Agreeing {
    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        Some(wall)
    }
}

/// A random history in a tenant of its own.
struct History<'f> {
    f: &'f Fixture,
    directory: Arc<Directory>,
    clock: Clock,
    random: Random,
    tenant: Tenant,
    tenant_since: Timestamp,
    ids: Vec<LocalityId>,
    users: Users,
    histories: Histories,
    operations: Vec<String>,
    /// A bulk change that was stopped, with a server that has not heard of it.
    frozen: Option<BulkPart>,
    tally: Tally,
}

/// The answer to an undoing.
#[derive(Debug, PartialEq)]
struct Answer {
    reverted: u64,
    kept: BTreeMap<LocalityId, String>,
}

impl<'f> History<'f> {
    fn new(f: &'f Fixture, seed: u64) -> Result<Self, Failure> {
        let clock = Clock::default();
        let backend = Backend { clock: Arc::new(Agreeing), ..f.store.clone() };
        let ids = Generator::new(Mode::Variable);
        let directory = Directory::new(backend, ids, Limits::default()).with_clock(clock.clone());
        let timed = format!("timed-{}", steps::timed_id(f.now(), seed));
        Ok(Self {
            f,
            directory: Arc::new(directory),
            clock,
            random: Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            tenant: Tenant::parse(&format!("undo-{seed}"))?,
            tenant_since: Timestamp::default(),
            ids: Vec::new(),
            users: Users::new(),
            histories: Histories::default(),
            operations: vec!["a".to_owned(), "b".to_owned(), timed],
            frozen: None,
            tally: Tally::default(),
        })
    }

    async fn run(mut self) -> Result<Tally, Failure> {
        self.create_tenant().await?;
        for _ in 0..8 + self.random.below(16) {
            self.step().await?;
        }
        for _ in 0..6 {
            let operation = self.random.one_of(&self.operations);
            self.undo(&operation).await.map_err(|failure| {
                format!("undoing {operation}: {failure}\n{}", self.histories.summary(self.f.now()))
            })?;
            for _ in 0..self.random.below(3) {
                self.step().await?;
            }
        }
        Ok(self.tally)
    }

    /// Reads the users, and adds their changes to their histories.
    async fn observe(&mut self, operation: &str, is_recorded: bool) -> Result<(), Failure> {
        let now = self.f.now();
        let users = self.read_users().await?;
        for (id, after) in &users {
            let before = self.users.get(id);
            let visible = |record: &Record| Visible::new(record, now);
            if before.map(visible) != Some(visible(after)) {
                let before = before.cloned();
                let operation = operation.to_owned();
                self.histories.add(*id, Entry { operation, before, is_recorded });
                self.tally.changes += 1;
            }
        }
        self.histories.retain(|id| users.contains_key(id));
        self.users = users;
        Ok(())
    }

    async fn read_users(&self) -> Result<Users, Failure> {
        let records = self.f.store.search.scan(&self.tenant, None, 1_000).await?;
        Ok(records.into_iter().map(|record| (record.id(), record)).collect())
    }

    /// Undoes an operation: as a dry run, then in earnest, and again.
    async fn undo(&mut self, operation: &str) -> Result<(), Failure> {
        let now = self.f.now();
        let expected = self.histories.expected(operation, &self.users, now);
        let dry = self.answer(operation, true).await?;
        equal(&self.read_users().await?, &self.users, "the users after a dry run")?;
        let answer = self.answer(operation, false).await?;
        let after = self.read_users().await?;
        self.check_frozen_server(&after).await?;
        let is_loose = expected.values().any(|expected| *expected == Expected::Loose);
        if !is_loose {
            equal(&dry, &answer, "what the dry run told")?;
        }
        self.compare(&expected, &answer, &after).await?;
        if !is_loose {
            let count = |wanted: fn(&Expected) -> bool| {
                expected.values().filter(|expected| wanted(expected)).count() as u64
            };
            let reverted = count(Expected::is_reverted);
            equal(&answer.reverted, &reverted, "the number of users as before")?;
            self.tally.deleted += count(|expected| *expected == Expected::Deleted);
        }
        self.tally.undone += 1;
        self.tally.reverted += answer.reverted;
        self.tally.kept += answer.kept.len() as u64;

        let kept: BTreeSet<_> = answer.kept.keys().collect();
        let again = self.answer(operation, false).await?;
        equal(&again.reverted, &0, "the users that were undone twice")?;
        equal(&again.kept.keys().collect(), &kept, "the users kept by the second undoing")?;
        equal(&self.read_users().await?, &after, "the users after the second undoing")?;
        self.histories.undo(operation, &expected);
        self.users = after;
        Ok(())
    }

    /// Fails unless the undoing did what the model expects.
    async fn compare(
        &self,
        expected: &BTreeMap<LocalityId, Expected>,
        answer: &Answer,
        after: &Users,
    ) -> Result<(), Failure> {
        let now = self.f.now();
        equal(&after.len(), &self.users.len(), "the number of users")?;
        for (id, before) in &self.users {
            let (found, wanted) = (&after[id], &expected[id]);
            let visible = Visible::new(found, now);
            let reason = answer.kept.get(id);
            let context = format!("user {id}, now {visible:?}, kept: {reason:?}");
            match wanted {
                Expected::Untouched => {
                    equal(found, before, &context)?;
                    equal(&reason, &None, &context)?;
                }
                Expected::Kept => {
                    equal(found, before, &context)?;
                    ensure(reason.is_some(), format!("no reason: {context}"))?;
                }
                Expected::Exact(wanted) => equal(&visible, wanted, &context)?,
                Expected::Deleted => {
                    ensure(visible.is_deleted(), format!("not deleted: {context}"))?;
                }
                Expected::Loose => {
                    let (old, kept) = (Visible::new(before, now), &self.histories);
                    kept.check_others(*id, &old, &visible)
                        .map_err(|fault| format!("{fault}: {context}, {old:?}, {visible:?}"))?;
                }
            }
        }
        self.check_claims(after).await
    }

    /// Fails unless the store has the claims of the users.
    async fn check_claims(&self, users: &Users) -> Result<(), Failure> {
        let now = self.f.now();
        let wanted: Vec<_> = users.values().flat_map(Record::claims).collect();
        let keys: Vec<_> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let found = self.f.store.reads.claims(&keys).await?;
        for ((key, wanted), found) in wanted.iter().zip(&found) {
            let is_over = wanted.hold.is_some_and(|until| until <= now);
            ensure(is_over || found.as_ref() == Some(wanted), format!("the claim {key:?}"))?;
        }
        Ok(())
    }

    /// Fails if a server that was frozen in a bulk change changes users afterwards.
    async fn check_frozen_server(&mut self, users: &Users) -> Result<(), Failure> {
        let Some(part) = self.frozen.clone() else { return Ok(()) };
        if !self.is_undone(&part.id).await? {
            return Ok(());
        }
        self.frozen = None;
        for id in users.keys() {
            let late = Mutation { bulk: Some(part.clone()), ..self.bulk_mutation(*id, &part.id) };
            self.f.apply(late).await?;
        }
        equal(&self.read_users().await?, users, "the users after a frozen server goes on")
    }

    async fn is_undone(&self, id: &str) -> Result<bool, Failure> {
        let change = self.f.store.bulk_changes.bulk_change(&self.tenant, id).await?;
        Ok(change.is_some_and(|change| change.lease.is_none()))
    }

    async fn answer(&self, operation: &str, dry_run: bool) -> Result<Answer, Failure> {
        self.set_clock();
        let context = self.directory.context(self.tenant.clone(), "admin", "UndoOperation", "");
        let call = polynym_directory::MutationCall { dry_run, ..context.into() };
        let mut undo = self.directory.begin_undo(&call, operation).await?;
        let mut answer = Answer { reverted: 0, kept: BTreeMap::new() };
        while let Some(step) = undo.next().await? {
            answer.reverted += step.reverted;
            let reason = |(id, error): (LocalityId, Error)| (id, error.to_string());
            answer.kept.extend(step.kept.into_iter().map(reason));
        }
        Ok(answer)
    }

    /// Sets the clock of the directory to the time of the next mutation.
    fn set_clock(&self) {
        self.clock.set_ahead(self.f.now().as_millis() - Timestamp::now().as_millis());
    }
}
