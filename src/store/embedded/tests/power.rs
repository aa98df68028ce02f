//! Power loss at random moments, while mutations are written and again while the store is opened.
//! Everything that was acknowledged is there afterwards, each mutation as a whole or not at all, in
//! order, and a verification finds nothing.

mod steps;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use futures_util::future::join_all;
use locality_uuid::{Generator, Mode};
use tempfile::TempDir;

use super::{creation, id, is_there};
use crate::conformance::model::{Model, matches};
use crate::conformance::step::Step;
use crate::directory::error::Error;
use crate::directory::model::new_user::NewUser;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::{Mutation, MutationKind, UserChange};
use crate::directory::read_set::Outcome;
use crate::directory::store::Store;
use crate::store::embedded::file::lock::FileId;
use crate::store::embedded::file::tests::disk::{Disk, NextDisk, Random, When};
use crate::store::embedded::options::Options;
use crate::store::embedded::setup::integrity::IntegritySession;
use crate::store::embedded::store::Embedded;
use crate::store::integrity::{Finding, Observer, verify};

const FILE: &str = "directory.redb";
/// About the steps of the disk that the opening of a store takes, and how many of them are syncs.
const OPENING: (usize, usize) = (10, 4);
/// The same for a group of mutations.
const WRITING: (usize, usize) = (16, 2);
/// The folder for files in memory: the tests need no real disk.
const MEMORY: &str = "/dev/shm";
/// The largest batch. Of so many futures, `join_all` polls the first one first.
const BATCH: usize = 30;
/// As many large users as make the file grow several times.
const CROWD: usize = 200;
/// When the model's clock begins: long ago, for a verification takes the time from the system's.
const START: i64 = 1_000_000_000_000;
/// The losses of one machine in the long test: later, hardly any of the first users would be left.
const CHAIN: usize = 100;
/// The variables with the number of losses in the long test, and with its seed.
const LOSSES: &str = "POLYNYM_POWER_LOSSES";
const SEED: &str = "POLYNYM_POWER_SEED";

/// A machine that loses its power again and again, and what has survived.
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

/// A store that is open on a disk that will fail.
struct Life {
    store: Embedded,
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

    /// Opens the store, however often the power fails meanwhile.
    async fn open(&mut self) -> Life {
        loop {
            self.verify().await;
            let folder = self.folder();
            let file = FileId::of(&fs::metadata(folder.path().join(FILE)).unwrap());
            let when = if self.random.below(2) == 0 { self.moment(OPENING) } else { When::Never };
            let disk = Disk::new(file, self.image.clone(), when);
            let group_limit = [1, 5, BATCH][self.random.below(3)];
            match Embedded::open(
                folder.path(),
                Options { cache_bytes: 1 << 20, group_limit, ..Options::default() },
            ) {
                Ok(store) => {
                    let groups = 1 + BATCH / group_limit;
                    disk.fail_at(self.moment((groups * WRITING.0, groups * WRITING.1)));
                    return Life { store, disk, _folder: folder };
                }
                Err(error) => {
                    assert!(disk.has_failed(), "seed {}: {error}", self.seed);
                    self.tally.losses_while_opening += 1;
                    self.lose(&disk);
                }
            }
        }
    }

    /// Whether there were so many losses, some of each kind.
    fn has_lost(&self, losses: usize) -> bool {
        let kinds = [self.tally.losses_while_opening, self.tally.unanswered_and_done];
        self.tally.losses >= losses
            && (kinds.iter().all(|count| *count > 0) || self.tally.losses > 20 * losses)
    }

    /// One of so many steps, or of so many syncs: what is written just before these matters most.
    fn moment(&mut self, (steps, syncs): (usize, usize)) -> When {
        match self.random.below(2) {
            0 => When::Step(self.random.below(steps) as u64),
            _ => When::Sync(self.random.below(syncs) as u64),
        }
    }

    /// Ends the power, where it has not failed yet: before the store is closed, or just after.
    fn end(&mut self, life: Life) {
        let Life { store, disk, _folder } = life;
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

    /// Fails if a verification of what has survived finds anything.
    async fn verify(&self) {
        let folder = self.folder();
        let audit = IntegritySession::open(folder.path())
            .unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let mut findings = Findings::default();
        verify(&audit, false, &mut findings).await.unwrap();
        assert!(findings.0.is_empty(), "seed {}: {:?}", self.seed, findings.0);
    }

    /// Sends all mutations at once. Returns the answers that the caller got: those to the first
    /// ones.
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

    fn tell(&self, what: &str) {
        println!("{what}: {:?}", self.tally);
        let Tally { losses_while_opening, unanswered, unanswered_and_done, .. } = self.tally;
        assert!(
            losses_while_opening > 0 && unanswered_and_done > 0 && unanswered > unanswered_and_done
        );
    }
}

fn folder() -> TempDir {
    if Path::new(MEMORY).is_dir() { tempfile::tempdir_in(MEMORY) } else { tempfile::tempdir() }
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

/// Mutations of all kinds, each answer and each state held against the model.
async fn lose_power(losses: usize, seed: u64) {
    let mut machine = Machine::new(seed);
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    // The possible states after the last loss: the state after each of the mutations that were not
    // answered.
    let mut models = vec![Model::at(Timestamp::from_millis(START))];
    while !machine.has_lost(losses) {
        let life = machine.open().await;
        let mut courses: Vec<_> = survivors(models, &life.store, &mut machine)
            .await
            .into_iter()
            .map(Course::new)
            .collect();
        let mut mutations = Vec::new();
        for _ in 0..1 + machine.random.below(BATCH) {
            let step = steps::any(&mut machine.random);
            let mutation = courses[0].last().clone().mutation(&step, &ids).unwrap().unwrap();
            courses.iter_mut().for_each(|course| course.go_on(&mutation, &step));
            mutations.push(mutation);
        }
        let answers = machine.send(&life.store, mutations).await;
        let outcomes: Vec<_> = courses.iter().map(|course| course.fits(&answers)).collect();
        assert!(outcomes.iter().any(Result::is_ok), "seed {seed}: {outcomes:?}");
        let fitting = courses.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
        models =
            fitting.flat_map(|(course, _)| course.models.into_iter().skip(answers.len())).collect();
        machine.end(life);
    }
    let life = machine.open().await;
    survivors(models, &life.store, &mut machine).await;
    machine.tell("power loss under mutations of all kinds");
}

/// The possible behaviour of a store: its first state, the state after each mutation, and each
/// answer.
struct Course {
    models: Vec<Model>,
    wanted: Vec<Result<Outcome, Vec<Error>>>,
}

impl Course {
    fn new(model: Model) -> Self {
        Self { models: vec![model], wanted: Vec::new() }
    }

    fn last(&self) -> &Model {
        &self.models[self.models.len() - 1]
    }

    fn go_on(&mut self, mutation: &Mutation, step: &Step) {
        let mut model = self.last().clone();
        self.wanted.push(model.apply(mutation, step));
        self.models.push(model);
    }

    fn fits(&self, answers: &[Result<Outcome, Error>]) -> Result<(), String> {
        let fit = |(n, (answer, wanted))| {
            matches(answer, wanted).map_err(|failure| format!("mutation {n}: {failure}"))
        };
        answers.iter().zip(&self.wanted).enumerate().try_for_each(fit)
    }
}

/// The states in which the store can be: those of `models` that look like it, unless they remember
/// the same requests. No clock goes back, also where the last mutations left nothing to see.
async fn survivors(models: Vec<Model>, store: &Embedded, machine: &mut Machine) -> Vec<Model> {
    let now = models.iter().map(Model::now).max().unwrap();
    let (mut found, mut differences) = (Vec::<Model>::new(), Vec::new());
    for (n, model) in models.into_iter().enumerate() {
        match model.compare(store).await {
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
        "seed {}: the store is as after none of its mutations: {differences:#?}",
        machine.seed
    );
    found
}

/// Large users come and go, so that the file grows and shrinks.
async fn lose_power_while_growing(losses: usize, seed: u64) {
    let mut machine = Machine::new(seed);
    let mut there = vec![BTreeSet::new()];
    let (mut next, mut grows) = (0, true);
    while !machine.has_lost(losses) {
        let life = machine.open().await;
        there = vec![surviving_users(&there, &life.store, &mut machine).await];
        grows = if grows { there[0].len() < CROWD } else { there[0].is_empty() };
        let mut mutations = Vec::new();
        while mutations.len() < BATCH {
            let mut users = there[there.len() - 1].clone();
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
            there.push(users);
        }
        let answers = machine.send(&life.store, mutations).await;
        assert!(answers.iter().all(Result::is_ok), "seed {seed}: {answers:?}");
        there.drain(..answers.len());
        machine.end(life);
    }
    let life = machine.open().await;
    surviving_users(&there, &life.store, &mut machine).await;
    machine.tell("power loss while the file grows and shrinks");
}

/// The creation of a user with a name of 8 KiB.
fn large(n: u32) -> Mutation {
    let mutation = creation(n);
    let MutationKind::User(id, UserChange::Create(draft)) = mutation.kind else { unreachable!() };
    let draft = NewUser { display_name: "x".repeat(8 << 10), ..draft };
    Mutation { kind: MutationKind::User(id, UserChange::Create(draft)), ..mutation }
}

/// The users who are there. They must be one of these sets.
async fn surviving_users(
    sets: &[BTreeSet<u32>],
    store: &Embedded,
    machine: &mut Machine,
) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for n in sets.iter().flatten().copied().collect::<BTreeSet<_>>() {
        if is_there(store, n).await.unwrap() {
            found.insert(n);
        }
    }
    let Some(n) = sets.iter().position(|set| *set == found) else {
        panic!("seed {}: {found:?} is none of {sets:?}", machine.seed)
    };
    let all = store.scan(&Tenant::DEFAULT, None, usize::MAX).await.unwrap().len();
    assert_eq!(all, found.len(), "seed {}: users who were gone are back", machine.seed);
    machine.tally.unanswered_and_done += n;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_power_loss() {
    lose_power(80, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_and_shrinks_survives_a_power_loss() {
    lose_power_while_growing(40, 2).await;
}

/// A store that is being made has its name only once all of it is on the disk.
#[test]
fn a_power_loss_while_a_store_is_made_leaves_none() {
    for good in 0.. {
        let folder = folder();
        let file = folder.path().join(FILE);
        let disk = NextDisk::new(When::Step(good));
        let outcome = Embedded::open(folder.path(), Options::default());
        assert_eq!(file.exists(), outcome.is_ok(), "after {good} steps");
        if outcome.is_ok() {
            assert!(disk.is_safe(&fs::read(&file).unwrap()), "what is not safe has a name");
            assert!(good > 3, "a store takes {good} steps to make");
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
    let losses = number(LOSSES).unwrap_or(5_000) as usize;
    let seed = number(SEED).unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_secs());
    println!("seed {seed}");
    for (n, done) in (0..losses).step_by(CHAIN).enumerate() {
        let (losses, seed) = (CHAIN.min(losses - done), seed + n as u64);
        tokio::join!(lose_power(losses, seed), lose_power_while_growing(losses, seed));
    }
}
