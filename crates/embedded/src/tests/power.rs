//! Power loss at random steps, while mutations are written and again while the store is opened. All
//! acknowledged mutations survive, the others completely or not at all, in order, and a
//! verification finds nothing.

mod steps;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use locality_uuid::{Generator, Mode};
use tempfile::TempDir;

use super::{creation, exists, id};
use crate::file::lock::FileId;
use crate::file::opener::FILE;
use crate::file::tests::disk::{Disk, NextDisk, Random, When};
use crate::options::Options;
use crate::setup::integrity::IntegritySession;
use crate::store::Embedded;
use conformance::model::{Model, matches};
use conformance::step::Step;
use polynym_directory::{
    Error, Mutation, MutationKind, Mutations, NewUser, Outcome, Search, Tenant, Timestamp,
    UserChange,
};
use polynym_store_common::integrity::{Finding, Observer, verify};

/// About the steps of the disk while a store is opened, and the number of syncs among them.
const OPENING: (usize, usize) = (10, 4);
/// The same for a group of mutations.
const WRITING: (usize, usize) = (16, 2);
/// A folder in memory: the tests need no real disk.
const MEMORY_FOLDER: &str = "/dev/shm";
/// The most mutations of a batch: `join_all` polls that many futures in order.
const MAX_BATCH: usize = 30;
/// Enough large users to make the file grow several times.
const LARGE_USERS: usize = 200;
/// The start of the model's clock: long ago, because a verification uses the system's clock.
const START: i64 = 1_000_000_000_000;
/// The losses of one machine in the long test: more would leave hardly any of the first users.
const LOSSES_PER_MACHINE: usize = 100;
/// The variables for the number of losses and the seed of the long test.
const LOSSES_VARIABLE: &str = "POLYNYM_POWER_LOSSES";
const SEED_VARIABLE: &str = "POLYNYM_POWER_SEED";

/// A machine that loses power repeatedly, and the surviving file.
struct Machine {
    random: Random,
    seed: u64,
    image: Vec<u8>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    losses: usize,
    losses_while_opening: usize,
    acknowledged: usize,
    unanswered: usize,
    unanswered_and_done: usize,
    longest_file: usize,
}

/// An open store on a disk that will lose power.
struct RunningStore {
    store: Arc<Embedded>,
    disk: Disk,
    _folder: TempDir,
}

impl Machine {
    /// A machine with an empty store.
    fn new(seed: u64) -> Self {
        let folder = folder();
        drop(Embedded::open(folder.path(), Options::default()).unwrap());
        let image = fs::read(folder.path().join(FILE)).unwrap();
        Self { random: Random(seed), seed, image, tally: Tally::default() }
    }

    fn folder(&self) -> TempDir {
        let folder = folder();
        fs::write(folder.path().join(FILE), &self.image).unwrap();
        folder
    }

    /// Opens the store, again after each power loss.
    async fn open(&mut self) -> RunningStore {
        loop {
            self.verify().await;
            let folder = self.folder();
            let file = FileId::of(&fs::metadata(folder.path().join(FILE)).unwrap());
            let when =
                if self.random.below(2) == 0 { self.failure_point(OPENING) } else { When::Never };
            let disk = Disk::new(file, self.image.clone(), when);
            let group_limit = [1, 5, MAX_BATCH][self.random.below(3)];
            match Embedded::open(
                folder.path(),
                Options { cache_bytes: 1 << 20, group_limit, ..Options::default() },
            ) {
                Ok(store) => {
                    let groups = 1 + MAX_BATCH / group_limit;
                    disk.fail_at(self.failure_point((groups * WRITING.0, groups * WRITING.1)));
                    return RunningStore { store: Arc::new(store), disk, _folder: folder };
                }
                Err(error) => {
                    assert!(disk.has_failed(), "seed {}: {error}", self.seed);
                    self.tally.losses_while_opening += 1;
                    self.lose(&disk);
                }
            }
        }
    }

    /// Whether there were at least `losses` losses, some of each kind.
    fn has_lost(&self, losses: usize) -> bool {
        let kinds = [self.tally.losses_while_opening, self.tally.unanswered_and_done];
        self.tally.losses >= losses
            && (kinds.iter().all(|count| *count > 0) || self.tally.losses > 20 * losses)
    }

    /// A random step or sync. Failures at syncs are the most likely to reveal errors.
    fn failure_point(&mut self, (steps, syncs): (usize, usize)) -> When {
        match self.random.below(2) {
            0 => When::Step(self.random.below(steps) as u64),
            _ => When::Sync(self.random.below(syncs) as u64),
        }
    }

    /// Cuts the power, unless it has failed: before the store is closed, or just after.
    fn cut_power(&mut self, running: RunningStore) {
        let RunningStore { store, disk, _folder } = running;
        if self.random.below(5) == 0 {
            drop(store);
            self.lose(&disk);
        } else {
            self.lose(&disk);
            drop(store);
        }
    }

    fn lose(&mut self, disk: &Disk) {
        self.image = disk.fail(&mut self.random);
        self.tally.losses += 1;
        self.tally.longest_file = self.tally.longest_file.max(self.image.len());
    }

    /// Asserts that a verification of the surviving file finds nothing.
    async fn verify(&self) {
        let folder = self.folder();
        let session = IntegritySession::open(folder.path())
            .unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let mut findings = Findings::default();
        verify(&session, false, &mut findings).await.unwrap();
        assert!(findings.0.is_empty(), "seed {}: {:?}", self.seed, findings.0);
    }

    /// Sends all mutations together. Returns the answers until the power loss: those of the first
    /// mutations.
    async fn send(
        &mut self,
        store: &Embedded,
        mutations: Vec<Mutation>,
    ) -> Vec<Result<Outcome, Error>> {
        let sent = mutations.len();
        let mut answers =
            join_all(mutations.into_iter().map(|mutation| store.mutate(mutation))).await;
        let is_answer = |answer: &Result<_, _>| {
            !matches!(answer, Err(Error::Unavailable(_) | Error::OutcomeUnknown(_)))
        };
        let known = answers.iter().take_while(|answer| is_answer(answer)).count();
        assert!(!answers[known..].iter().any(is_answer), "seed {}: {answers:?}", self.seed);
        answers.truncate(known);
        self.tally.acknowledged += known;
        self.tally.unanswered += sent - known;
        answers
    }

    fn report(&self, scenario: &str) {
        println!("{scenario}: {:?}", self.tally);
        let Tally { losses_while_opening, unanswered, unanswered_and_done, .. } = self.tally;
        assert!(
            losses_while_opening > 0 && unanswered_and_done > 0 && unanswered > unanswered_and_done
        );
    }
}

fn folder() -> TempDir {
    if Path::new(MEMORY_FOLDER).is_dir() {
        tempfile::tempdir_in(MEMORY_FOLDER)
    } else {
        tempfile::tempdir()
    }
    .unwrap()
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Observer for Findings {
    fn at(&mut self, _: &'static str, _: u64, _: u64) {}

    fn found(&mut self, finding: &Finding) {
        self.0.push(finding.clone());
    }
}

/// Mutations of all kinds. Compares each answer and each state with the model.
async fn lose_power(losses: usize, seed: u64) {
    let mut machine = Machine::new(seed);
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    // The possible states after the last loss: one for each number of unanswered mutations that
    // took effect.
    let mut models = vec![Model::at(Timestamp::from_millis(START))];
    while !machine.has_lost(losses) {
        let running = machine.open().await;
        let mut predictions: Vec<_> = survivors(models, &running.store, &mut machine)
            .await
            .into_iter()
            .map(Prediction::new)
            .collect();
        let mut mutations = Vec::new();
        for _ in 0..1 + machine.random.below(MAX_BATCH) {
            let step = steps::any(&mut machine.random);
            let mutation = predictions[0].last().clone().mutation(&step, &ids).unwrap().unwrap();
            predictions.iter_mut().for_each(|prediction| prediction.apply(&mutation, &step));
            mutations.push(mutation);
        }
        let answers = machine.send(&running.store, mutations).await;
        let outcomes: Vec<_> =
            predictions.iter().map(|prediction| prediction.check(&answers)).collect();
        assert!(outcomes.iter().any(Result::is_ok), "seed {seed}: {outcomes:?}");
        models = predictions
            .into_iter()
            .zip(outcomes)
            .filter(|(_, outcome)| outcome.is_ok())
            .flat_map(|(prediction, _)| prediction.models.into_iter().skip(answers.len()))
            .collect();
        machine.cut_power(running);
    }
    let running = machine.open().await;
    survivors(models, &running.store, &mut machine).await;
    machine.report("power loss under mutations of all kinds");
}

/// A possible behaviour of a store: its first state, the state after each mutation, and each
/// answer.
struct Prediction {
    models: Vec<Model>,
    answers: Vec<Result<Outcome, Vec<Error>>>,
}

impl Prediction {
    fn new(model: Model) -> Self {
        Self { models: vec![model], answers: Vec::new() }
    }

    fn last(&self) -> &Model {
        &self.models[self.models.len() - 1]
    }

    fn apply(&mut self, mutation: &Mutation, step: &Step) {
        let mut model = self.last().clone();
        self.answers.push(model.apply(mutation, step));
        self.models.push(model);
    }

    fn check(&self, answers: &[Result<Outcome, Error>]) -> Result<(), String> {
        let matches_model = |(n, (answer, expected))| {
            matches(answer, expected).map_err(|failure| format!("mutation {n}: {failure}"))
        };
        answers.iter().zip(&self.answers).enumerate().try_for_each(matches_model)
    }
}

/// The possible states of the store: those of `models` that agree with it, without duplicates that
/// remember the same requests. Their clocks advance even past mutations that left no trace.
async fn survivors(models: Vec<Model>, store: &Arc<Embedded>, machine: &mut Machine) -> Vec<Model> {
    let now = models.iter().map(Model::now).max().unwrap();
    let (mut found, mut differences) = (Vec::<Model>::new(), Vec::new());
    for (n, model) in models.into_iter().enumerate() {
        match model.compare(&store.backend()).await {
            Err(difference) => differences.push(difference.to_string()),
            Ok(()) if found.iter().any(|other| other.remembers_like(&model)) => {}
            Ok(()) => {
                machine.tally.unanswered_and_done += if found.is_empty() { n } else { 0 };
                found.push(model.later(now));
            }
        }
    }
    assert!(
        !found.is_empty(),
        "seed {}: the store agrees with no possible state: {differences:#?}",
        machine.seed
    );
    found
}

/// Large users come and go, so that the file grows and shrinks.
async fn lose_power_while_growing(losses: usize, seed: u64) {
    let mut machine = Machine::new(seed);
    let mut sets = vec![BTreeSet::new()];
    let (mut next, mut grows) = (0, true);
    while !machine.has_lost(losses) {
        let running = machine.open().await;
        sets = vec![surviving_users(&sets, &running.store, &mut machine).await];
        grows = if grows { sets[0].len() < LARGE_USERS } else { sets[0].is_empty() };
        let mut mutations = Vec::new();
        while mutations.len() < MAX_BATCH {
            let mut users = sets[sets.len() - 1].clone();
            mutations.push(if grows {
                users.insert(next);
                next += 1;
                large(next - 1)
            } else if let Some(first) = users.pop_first() {
                Mutation::of_user(
                    Tenant::DEFAULT,
                    id(first),
                    Timestamp::from_millis(1),
                    UserChange::Purge,
                )
            } else {
                break;
            });
            sets.push(users);
        }
        let answers = machine.send(&running.store, mutations).await;
        assert!(answers.iter().all(Result::is_ok), "seed {seed}: {answers:?}");
        sets.drain(..answers.len());
        machine.cut_power(running);
    }
    let running = machine.open().await;
    surviving_users(&sets, &running.store, &mut machine).await;
    machine.report("power loss while the file grows and shrinks");
}

/// The creation of a user with a name of 8 KiB.
fn large(n: u32) -> Mutation {
    let mutation = creation(n);
    let MutationKind::User(id, UserChange::Create(draft)) = mutation.kind else { unreachable!() };
    let draft = NewUser { display_name: "x".repeat(8 << 10), ..draft };
    Mutation { kind: MutationKind::User(id, UserChange::Create(draft)), ..mutation }
}

/// The users of the store. They must be one of these sets.
async fn surviving_users(
    sets: &[BTreeSet<u32>],
    store: &Embedded,
    machine: &mut Machine,
) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for n in sets.iter().flatten().copied().collect::<BTreeSet<_>>() {
        if exists(store, n).await.unwrap() {
            found.insert(n);
        }
    }
    let Some(n) = sets.iter().position(|set| *set == found) else {
        panic!("seed {}: {found:?} is not in {sets:?}", machine.seed)
    };
    let all = store.scan(&Tenant::DEFAULT, None, usize::MAX).await.unwrap().users.len();
    assert_eq!(all, found.len(), "seed {}: purged users are back", machine.seed);
    machine.tally.unanswered_and_done += n;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_mutations_survive_a_power_loss() {
    lose_power(80, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_and_shrinks_survives_a_power_loss() {
    lose_power_while_growing(20, 2).await;
}

/// A new store gets its name only once all of it is durable.
#[test]
fn a_power_loss_while_a_store_is_created_leaves_none() {
    for good in 0.. {
        let folder = folder();
        let file = folder.path().join(FILE);
        let disk = NextDisk::new(When::Step(good));
        let outcome = Embedded::open(folder.path(), Options::default());
        assert_eq!(file.exists(), outcome.is_ok(), "after {good} steps");
        if outcome.is_ok() {
            assert!(
                disk.is_durable(&fs::read(&file).unwrap()),
                "a file that is not durable has its name"
            );
            assert!(good > 3, "a store takes {good} steps to create");
            return;
        }
        drop(disk);
        Embedded::open(folder.path(), Options::default()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_power_loss() {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<u64>().unwrap());
    let losses = number(LOSSES_VARIABLE).unwrap_or(5_000) as usize;
    let seed =
        number(SEED_VARIABLE).unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_secs());
    println!("seed {seed}");
    for (n, done) in (0..losses).step_by(LOSSES_PER_MACHINE).enumerate() {
        let (losses, seed) = (LOSSES_PER_MACHINE.min(losses - done), seed + n as u64);
        tokio::join!(lose_power(losses, seed), lose_power_while_growing(losses, seed));
    }
}
