//! The task that runs bulk changes, over a store that holds up or refuses single mutations.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use conformance::StoreFactory;
use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Backend, BulkAction, BulkChange, BulkError, BulkState, BulkStep, BulkUsers, Clock, Directory,
    Error, Limits, Mutation, MutationKind, MutationReport, Mutations, Outcome, RunStep,
    StartBulkChange, State, StoreClock, Tenant, Timestamp, View,
};
use polynym_embedded::Options;
use tokio::time::{sleep, timeout};

use super::Folder;
use super::support::users;

const ID: &str = "bulk-1";
/// The time limit of a test that fails.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How a store treats a mutation.
#[derive(PartialEq)]
enum Fate {
    Passes,
    Hangs,
    Fails,
}

type Rule = Box<dyn Fn(&Mutation) -> Fate + Send + Sync>;

/// Mutations of which some hang or fail.
struct Interposed {
    inner: Arc<dyn Mutations>,
    rule: Rule,
}

#[async_trait]
impl Mutations for Interposed {
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        match (self.rule)(&mutation) {
            Fate::Passes => self.inner.mutate(mutation).await,
            Fate::Fails => Err(Error::Unavailable("away".into())),
            Fate::Hangs => pending().await,
        }
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        let mut outcomes = Vec::new();
        for mutation in mutations {
            outcomes.push(self.mutate(mutation).await);
        }
        outcomes
    }

    async fn counter(&self, name: &str) -> Result<u64, Error> {
        self.inner.counter(name).await
    }
}

/// A clock of the store that always agrees with the machine's.
struct Agreeing;

impl StoreClock for Agreeing {
    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        Some(wall)
    }
}

/// All callers have all rights. Panics for one.
fn may_change(change: &BulkChange) -> bool {
    assert_ne!(change.caller, "panicking");
    true
}

/// A directory with its clock and its store.
struct Scene {
    directory: Arc<Directory>,
    clock: Clock,
    /// Milliseconds by which the clock is ahead.
    ahead: AtomicI64,
    store: Backend,
    _folder: Folder,
}

impl Scene {
    async fn new(rule: impl Fn(&Mutation) -> Fate + Send + Sync + 'static) -> Self {
        let folder = Folder::new(Options::default());
        let store = folder.open().await.unwrap();
        let interposed = Interposed { inner: store.mutations.clone(), rule: Box::new(rule) };
        let backend =
            Backend { mutations: Arc::new(interposed), clock: Arc::new(Agreeing), ..store.clone() };
        let clock = Clock::default();
        let directory = Directory::new(backend, Generator::new(Mode::Variable), Limits::default());
        let directory = Arc::new(directory.with_clock(clock.clone()));
        Self { directory, clock, ahead: AtomicI64::default(), store, _folder: folder }
    }

    /// Creates users of a tenant.
    async fn create(&self, tenant: &Tenant, users: std::ops::Range<usize>) {
        for n in users {
            let creation = Mutation { tenant: tenant.clone(), ..users::creation(n) };
            self.store.mutations.mutate(creation).await.unwrap();
        }
    }

    /// Starts to disable all active users of a tenant.
    async fn start(&self, tenant: &Tenant, id: &str, caller: &str) {
        self.start_as(tenant, id, caller, false).await;
    }

    async fn start_as(&self, tenant: &Tenant, id: &str, caller: &str, dry_run: bool) {
        let context = self.directory.context(tenant.clone(), caller, "StartBulkChange", "");
        let users = BulkUsers::Matching("state = ACTIVE");
        let request = StartBulkChange { id, users, action: BulkAction::Disable, dry_run };
        self.directory.start_bulk_change(context.into(), request).await.unwrap();
    }

    /// Runs bulk changes until the work is done.
    async fn run_while<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            never = self.directory.run_bulk_changes(Arc::new(may_change)) => match never {},
            done = timeout(TIMEOUT, work) => done.expect("the bulk change goes on"),
        }
    }

    /// Waits until a bulk change satisfies the condition, and does `meanwhile` again and again.
    async fn until(
        &self,
        (tenant, id): (&Tenant, &str),
        is_met: impl Fn(&BulkChange) -> bool,
        mut meanwhile: impl FnMut(),
    ) -> BulkChange {
        loop {
            meanwhile();
            let found = self.store.bulk_changes.bulk_change(tenant, id).await.unwrap();
            if let Some(found) = found.filter(|change| is_met(change)) {
                return found;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Runs bulk changes until one has ended, while the clocks advance by the step.
    async fn run_until_ended(&self, tenant: &Tenant, id: &str, step: Duration) -> BulkChange {
        self.run_while(self.until((tenant, id), ended, || self.advance(step))).await
    }

    /// Advances the clocks.
    fn advance(&self, step: Duration) {
        let millis = step.as_millis() as i64;
        self.clock.set_ahead(self.ahead.fetch_add(millis, Relaxed) + millis);
        self.clock.skip(step);
    }

    async fn is_disabled(&self, n: usize) -> bool {
        let ids = [users::id(n)];
        let found = self.store.lookups.get(&Tenant::DEFAULT, &ids, View::Full).await.unwrap();
        let user = found.into_iter().next().unwrap().unwrap().unwrap();
        user.decode().unwrap().state == State::Disabled
    }
}

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

const fn ended(change: &BulkChange) -> bool {
    change.end_time.is_some()
}

/// A dry run that nobody runs keeps nobody from undoing the operation whose id it has.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_blocks_no_undoing() {
    let scene = Scene::new(|_| Fate::Passes).await;
    scene.create(&Tenant::DEFAULT, 0..1).await;
    for (id, dry_run) in [("counted", true), ("running", false)] {
        scene.start_as(&Tenant::DEFAULT, id, "ana", dry_run).await;
        let context = scene.directory.context(Tenant::DEFAULT, "ben", "UndoOperation", "");
        let refused = scene.directory.begin_undo(&context.into(), id, &[]).await.err();
        let is_blocked = matches!(refused, Some(Error::Bulk(BulkError::Running)));
        assert_eq!(is_blocked, !dry_run, "{id}: {refused:?}");
    }
}

#[tokio::test]
async fn users_that_hang_hold_up_no_other_bulk_change() {
    let hung = tenant("hung");
    let is_hung = hung.clone();
    let scene = Scene::new(move |mutation: &Mutation| match mutation.bulk {
        Some(_) if mutation.tenant == is_hung => Fate::Hangs,
        _ => Fate::Passes,
    })
    .await;
    let (near, far) = (tenant("near"), tenant("far"));
    for (n, tenant) in [&hung, &near, &far].into_iter().enumerate() {
        scene.create(tenant, n..n + 1).await;
    }
    for n in 0..4 {
        scene.start(&hung, &format!("hung-{n}"), "busy").await;
    }
    scene.advance(Duration::from_secs(1));
    scene.start(&far, ID, "busy").await;
    scene.start(&near, ID, "web").await;
    let ended_both = async {
        let near = scene.until((&near, ID), ended, || ()).await;
        // One of the same caller has a turn once the others have stalled.
        let far = scene.until((&far, ID), ended, || scene.advance(Duration::from_secs(1))).await;
        [near, far]
    };
    for change in scene.run_while(ended_both).await {
        assert_eq!((change.state, change.counts.changed), (BulkState::Completed, 1));
    }
    let held = scene.store.bulk_changes.bulk_change(&hung, "hung-0").await.unwrap().unwrap();
    assert!(held.is_running());
}

#[tokio::test]
async fn the_lease_is_renewed_while_a_batch_runs() {
    let hangs = |mutation: &Mutation| match mutation.bulk {
        Some(_) => Fate::Hangs,
        None => Fate::Passes,
    };
    let scene = Scene::new(hangs).await;
    scene.create(&Tenant::DEFAULT, 0..1).await;
    scene.start(&Tenant::DEFAULT, ID, "web").await;
    let began = scene.directory.now().time;
    let advance = || scene.advance(Duration::from_millis(500));
    let is_renewed = |change: &BulkChange| {
        let until = change.lease.map_or(began, |lease| lease.until);
        !change.batch.users.is_empty() && until > began.plus(Duration::from_secs(40))
    };
    let held = scene.run_while(scene.until((&Tenant::DEFAULT, ID), is_renewed, advance)).await;

    let take = BulkStep::Take(users::id(7));
    let time = began.plus(Duration::from_secs(40));
    let kind = MutationKind::Bulk(ID.to_owned(), take);
    let taken = Mutation::new(Tenant::DEFAULT, time, kind);
    let taken = scene.store.mutations.mutate(taken).await.unwrap().report;
    assert_eq!(taken, MutationReport::Nothing, "another server has taken {held:?}");
}

#[tokio::test]
async fn users_that_the_store_never_accepts_fail_in_the_end() {
    let refused = |mutation: &Mutation| match mutation.user_id() {
        Some(id) if id == users::id(1) => Fate::Fails,
        _ => Fate::Passes,
    };
    let scene = Scene::new(refused).await;
    scene.create(&Tenant::DEFAULT, 0..3).await;
    scene.start(&Tenant::DEFAULT, ID, "web").await;
    let waiting = |change: &BulkChange| change.wait.is_some();
    let skip = || scene.clock.skip(Duration::from_secs(1));
    let waiting = scene.run_while(scene.until((&Tenant::DEFAULT, ID), waiting, skip)).await;
    assert_eq!(waiting.wait.as_ref().unwrap().reason, "STORE_UNAVAILABLE");
    assert_eq!(waiting.counts.checked(), 0);

    let ended = scene.run_until_ended(&Tenant::DEFAULT, ID, Duration::from_secs(10)).await;
    assert_eq!((ended.state, ended.counts.changed), (BulkState::Completed, 2));
    assert_eq!(ended.counts.failed, BTreeMap::from([("STORE_UNAVAILABLE".to_owned(), 1)]));
    assert_eq!((ended.failures[0].user, ended.wait), (users::id(1), None));

    // A whole batch waits longer, because the store may be to blame.
    scene.start(&Tenant::DEFAULT, "all", "web").await;
    let all = scene.run_until_ended(&Tenant::DEFAULT, "all", Duration::from_secs(30)).await;
    assert!(all.update_time > all.create_time.plus(Duration::from_secs(59 * 60)), "{all:?}");
    assert_eq!(all.counts.failed.values().sum::<u64>(), 1);
}

#[tokio::test]
async fn a_panic_ends_one_bulk_change() {
    let scene = Scene::new(|_| Fate::Passes).await;
    scene.create(&Tenant::DEFAULT, 0..1).await;
    scene.start(&Tenant::DEFAULT, "bad", "panicking").await;
    scene.start(&Tenant::DEFAULT, ID, "web").await;
    let good = scene.run_while(scene.until((&Tenant::DEFAULT, ID), ended, || ())).await;
    assert_eq!(good.state, BulkState::Completed);
    let bad = scene.run_while(scene.until((&Tenant::DEFAULT, "bad"), ended, || ())).await;
    assert_eq!((bad.state, &*bad.end_reason), (BulkState::Failed, "INTERNAL"));
}

#[tokio::test]
async fn an_undone_bulk_change_leaves_the_users_of_its_last_batch_as_they_were() {
    let loses_results = Arc::new(AtomicBool::new(true));
    let is_losing = loses_results.clone();
    let has_changed = |mutation: &Mutation| match &mutation.kind {
        MutationKind::Bulk(_, BulkStep::Run(_, RunStep::Save(progress))) => {
            progress.results.counts.changed > 0
        }
        _ => false,
    };
    let scene = Scene::new(move |mutation: &Mutation| {
        match is_losing.load(Relaxed) && has_changed(mutation) {
            true => Fate::Fails,
            false => Fate::Passes,
        }
    })
    .await;
    scene.create(&Tenant::DEFAULT, 0..1).await;
    scene.start(&Tenant::DEFAULT, ID, "web").await;
    let changed = async {
        while !scene.is_disabled(0).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    scene.run_while(changed).await;
    let context = || scene.directory.context(Tenant::DEFAULT, "web", "StopBulkChange", "");
    let undo = async || scene.directory.begin_undo(&context().into(), ID, &[]).await;
    let is_running =
        |undone: Result<(), Error>| matches!(undone, Err(Error::Bulk(BulkError::Running)));
    // The lease of its server is not over yet.
    scene.clock.set_ahead(-60_000);
    assert!(is_running(undo().await.map(drop)));
    let stopped = scene.directory.stop_bulk_change(context().into(), ID).await.unwrap();
    assert_eq!(stopped.batch.users, [users::id(0)], "a batch without results");
    assert!(is_running(undo().await.map(drop)), "its last users may still change");

    scene.clock.set_ahead(60_000);
    let mut undoing = undo().await.unwrap();
    while undoing.next().await.unwrap().is_some() {}
    assert!(!scene.is_disabled(0).await);

    // Its requests are forgotten by then.
    scene.clock.set_ahead(26 * 60 * 60 * 1_000);
    loses_results.store(false, Relaxed);
    scene.directory.resume_bulk_change(context().into(), ID).await.unwrap();
    let ended = scene.run_while(scene.until((&Tenant::DEFAULT, ID), ended, || ())).await;
    assert_eq!((ended.state, ended.counts.changed), (BulkState::Completed, 1));
    assert!(!scene.is_disabled(0).await);
}
