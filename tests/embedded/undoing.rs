//! Operations that are undone in random histories: more than the contract of all stores has. The
//! store is consistent afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Directory, Limits, Mutation, MutationCall, MutationKind, Mutations, Origin, Tenant, UserChange,
};
use polynym_embedded::{IntegritySession, Options};

use super::{Folder, open, users};
use polynym_store_common::integrity::{Finding, Inconsistency, Observer, verify};

/// Histories of a store.
const HISTORIES: u64 = 50;
/// The seed of the first; those below are of the contract of all stores.
const FIRST: u64 = 1_000;

/// Accepts histories alone: some changes of these users have no event.
struct Consistent;

impl Observer for Consistent {
    fn at(&mut self, _: &'static str, _: u64, _: u64) {}

    fn found(&mut self, finding: &Finding) {
        assert_eq!(finding.fault, Inconsistency::History, "{finding:?}");
    }
}

async fn agree(first: u64, histories: u64) {
    let (mut undone, mut reverted) = (0, 0);
    let begin = first;
    for first in (begin..begin + histories).step_by(HISTORIES as usize) {
        let folder = Arc::new(Folder::new(Options::default()));
        let seeds = first..first + HISTORIES;
        let tally = conformance::undoing::agree(folder.clone(), seeds).await;
        let tally = tally.unwrap_or_else(|failure| panic!("{failure}"));
        let session = IntegritySession::open(folder.folder.path()).unwrap();
        let summary = verify(&session, false, &mut Consistent).await.unwrap();
        assert!(summary.users > 50, "{summary:?}");
        undone += tally.undone;
        reverted += tally.reverted;
        let done = first + HISTORIES - begin;
        println!("{done} histories: {undone} operations were undone, for {reverted} users");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_operations_agree_with_the_model() {
    agree(FIRST, HISTORIES).await;
}

/// `POLYNYM_HISTORIES` sets the number of histories, in each of which six operations are undone,
/// and `POLYNYM_FIRST_HISTORY` the seed of the first.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes an hour"]
async fn long_undone_operations_agree_with_the_model() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("POLYNYM_FIRST_HISTORY", FIRST);
    agree(first, number("POLYNYM_HISTORIES", 17_000)).await;
}

/// The users whom a small operation changes, in each of two ways to name it.
const CHANGED: usize = 10;
/// An id with a time half an hour after the users were created.
const TIMED: &str = "leavers-019b76f6-1f40-7000-8000-000000000000";

/// How long a dry run takes that undoes a small operation in a tenant of `POLYNYM_USERS` users, and
/// one that tries each of them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "creates 100,000 users"]
async fn long_small_operations_of_large_tenants_are_undone_fast() {
    let count = std::env::var("POLYNYM_USERS").map_or(100_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for first in (0..count).step_by(1_000) {
        let creations = (first..count.min(first + 1_000)).map(users::creation).collect();
        store.mutate_all(creations).await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    }
    for (n, operation) in ["leavers", TIMED].into_iter().enumerate() {
        for user in 0..CHANGED {
            let user = users::id(user * count / CHANGED + n);
            let mutation = users::mutation_of(MutationKind::User(user, UserChange::Disable));
            let origin = Origin { operation_id: operation.to_owned(), ..Origin::default() };
            let time = mutation.now.time.plus(Duration::from_secs(3_600));
            store.mutate(Mutation { origin, now: time.into(), ..mutation }).await.unwrap();
        }
    }
    let ids = Generator::new(Mode::Variable);
    let directory = Arc::new(Directory::new(Arc::new(store).backend(), ids, Limits::default()));
    let undo = async |operation: &str, listed: &[String]| {
        let context = users::context(Tenant::DEFAULT, "UndoOperation");
        let call = MutationCall { dry_run: true, ..context.into() };
        let mut undo = directory.begin_undo(&call, operation, listed).await.unwrap();
        let (mut met, mut reverted) = (0, 0);
        while let Some(step) = undo.next().await.unwrap() {
            (met, reverted) = (met + step.users, reverted + step.reverted);
        }
        (met, reverted)
    };
    for operation in ["leavers", TIMED] {
        let begin = Instant::now();
        assert_eq!(undo(operation, &[]).await, (CHANGED as u64, CHANGED as u64));
        println!("{operation}: {:?} by events", begin.elapsed());
    }
    let all: Vec<_> = (0..count).map(|n| users::id(n).to_string()).collect();
    let (begin, mut reverted) = (Instant::now(), 0);
    for some in all.chunks(1_000) {
        reverted += undo("leavers", some).await.1;
    }
    assert_eq!(reverted, CHANGED as u64);
    println!("leavers: {:?} for each user", begin.elapsed());
}
