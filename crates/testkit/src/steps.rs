//! Random steps for the reference model; a failing run shrinks to a short one.

use std::sync::Arc;

use conformance::StoreFactory;
use conformance::model;
use conformance::step::{Action, Etag, NAMES, POLICIES, Step};
use polynym_directory::ConflictPolicy;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The maximum number of steps of one run.
const STEPS: usize = 80;
const DAY_AND_HOUR: i64 = 25 * 60 * 60 * 1_000;

/// The number of concurrent runs: most of their time is spent waiting for fsync.
const CONCURRENT_RUNS: u32 = 4;

/// Compares random runs with the reference model, each in a store of its own. `POLYNYM_MODEL_RUNS`
/// overrides the number of runs.
pub fn against_the_model<P: StoreFactory + 'static>(runs: u32, factory: impl Fn() -> P + Sync) {
    let runs = std::env::var("POLYNYM_MODEL_RUNS").map_or(runs, |runs| runs.parse().unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let run = |steps: Vec<Step>| {
        let outcome = runtime.block_on(model::run(Arc::new(factory()), &steps));
        outcome.map_err(|failure| TestCaseError::fail(failure.to_string()))
    };

    let some_runs = || {
        let cases = u32::div_ceil(runs, CONCURRENT_RUNS);
        let config = Config {
            cases,
            failure_persistence: None,
            max_shrink_iters: 2_000,
            ..Config::default()
        };
        TestRunner::new(config).run(&vec(step(), 1..=STEPS), run).unwrap();
    };
    std::thread::scope(|scope| (0..CONCURRENT_RUNS).for_each(|_| drop(scope.spawn(some_runs))));
}

fn step() -> impl Strategy<Value = Step> {
    let etag = prop_oneof![
        6 => Just(Etag::Any),
        3 => Just(Etag::Current),
        1 => Just(Etag::First),
        1 => Just(Etag::Wrong),
    ];

    let tenant = prop_oneof![5 => Just(0usize), 1 => Just(1usize)];
    let request = prop_oneof![4 => Just(None), 1 => (0..3u8, 0..2u64).prop_map(Some)];
    let room = prop_oneof![3 => Just(100usize), 2 => 1..4usize];
    let elapsed =
        prop_oneof![6 => 0..1_000i64, 2 => Just(0), 1 => Just(-500), 1 => Just(DAY_AND_HOUR)];
    let terms = (etag, request, room, 0..POLICIES, proptest::bool::weighted(0.1));

    (action(), 0..8usize, tenant, terms, elapsed).prop_map(
        |(action, user, tenant, (etag, request, room, policies, dry_run), elapsed)| Step {
            action,
            user,
            tenant,
            etag,
            request,
            room,
            policies,
            dry_run,
            elapsed,
        },
    )
}

fn state() -> impl Strategy<Value = Action> {
    prop_oneof![
        1 => Just(Action::Disable),
        1 => Just(Action::Enable),
        2 => Just(Action::Delete),
        2 => Just(Action::Undelete),
        1 => Just(Action::Purge),
        2 => Just(Action::Tend),
    ]
}

fn policy() -> impl Strategy<Value = ConflictPolicy> {
    prop_oneof![
        2 => Just(ConflictPolicy::PrimaryWins),
        2 => Just(ConflictPolicy::SecondaryWins),
        1 => Just(ConflictPolicy::Fail),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let name = || 0..NAMES.len();
    prop_oneof![
        6 => (vec(name(), 0..4), any::<bool>())
            .prop_map(|(names, primary)| Action::Create(names, primary)),
        1 => (0..3u8).prop_map(Action::Rename),
        2 => (0..4usize, proptest::option::of(0..3i64))
            .prop_map(|(n, value)| Action::Set(n, value)),
        1 => vec(0..4usize, 0..4).prop_map(Action::SetAll),
        8 => (name(), any::<bool>(), proptest::bool::weighted(0.2))
            .prop_map(|(n, verified, primary)| Action::Link(n, verified, primary)),
        5 => name().prop_map(Action::Unlink),
        6 => (name(), name()).prop_map(|(old, new)| Action::Replace(old, new)),
        2 => (name(), any::<bool>()).prop_map(|(n, yes)| Action::Verify(n, yes)),
        6 => state(),
        5 => (0..8usize, policy()).prop_map(|(user, policy)| Action::Merge(user, policy)),
        4 => (0..8usize).prop_map(Action::Unmerge),
        4 => (0..8usize, name()).prop_map(|(from, n)| Action::Move(from, n)),
        1 => name().prop_map(Action::Release),
        1 => Just(Action::Reopen),
    ]
}
