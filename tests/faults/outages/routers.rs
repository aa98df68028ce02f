//! Two routers of one cluster. A router takes the snapshot time from its own clock: a mutation
//! through one must see the acknowledged writes of the other, even if it writes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, BulkState, BulkStep, Consistency, Error, Hold, IdempotencyKey, Mutation, MutationKind,
    MutationReport, NewUser, Outcome, PolicyUpdate, RunStep, State as Life, Tenant, TenantChange,
    Timestamp, Update, User, UserChange, View,
};
use polynym_identifier::IdentityKey;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Reply, identifier, key};
use crate::group::Group;
use crate::load::{Load, Plan};
use crate::servers::Sharded;
use crate::stores::{cluster, fresh, open, prepare_sharded, print_line};
use crate::users;

/// Stores on one database, each through its own router, used alternately.
struct Alternating {
    stores: [Backend; 2],
    next: AtomicUsize,
}

impl Alternating {
    async fn new(cluster: &Sharded, name: &str) -> Self {
        let other = cluster.another_router().await;
        let one = open(&cluster.uri(name), Options::default(), false).await;
        let two = open(&cluster.uri_at(other, name), Options::default(), false).await;
        Self { stores: [one, two], next: AtomicUsize::new(0) }
    }

    /// The next store.
    fn next_store(&self) -> Backend {
        self.stores[self.next.fetch_add(1, Relaxed) % self.stores.len()].clone()
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.next_store().mutations.mutate(mutation).await
    }

    /// Executes a possible change. Returns the user.
    async fn change(&self, user: LocalityId, change: UserChange) -> User {
        let what = format!("{change:?}");
        let outcome = self.mutate(mutation(user, change)).await;
        outcome.unwrap_or_else(|error| panic!("{what}: {error:?}")).into_user().unwrap()
    }

    async fn owner(&self, key: IdentityKey) -> Option<LocalityId> {
        let mut resolved = self
            .next_store()
            .lookups
            .resolve(&[key], Consistency::Latest, View::Full, Duration::ZERO)
            .await
            .unwrap();
        resolved.found.remove(0).unwrap().map(|found| found.user.decode().unwrap().id)
    }
}

#[async_trait]
impl Caller for Alternating {
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply {
        Direct { store: self.next_store(), consistency: Consistency::Latest }
            .call(call, request)
            .await
    }
}

fn mutation(user: LocalityId, change: UserChange) -> Mutation {
    Mutation { now: Timestamp::now().into(), ..users::mutation(user, change) }
}

fn creation(name: usize) -> UserChange {
    UserChange::Create(NewUser {
        identities: vec![users::identity(identifier(name))],
        ..NewUser::default()
    })
}

fn link(name: usize) -> UserChange {
    UserChange::Link(users::identity(identifier(name)))
}

fn rename(text: &str) -> UserChange {
    UserChange::Update(Update::from_mask(None, text.to_owned(), BTreeMap::new()).unwrap())
}

/// Refusals, changes without effect, dry runs and repeated requests, each right after a change that
/// affects it.
async fn check_visibility(stores: &Alternating, n: usize) {
    let (user, other) = (users::id(2 * n), users::id(2 * n + 1));
    let (own, others) = (2 * n % 64, (2 * n + 1) % 64);
    stores.change(user, creation(own)).await;
    stores.change(user, UserChange::Unlink(identifier(own))).await;
    stores.change(user, link(own)).await;
    assert_eq!(
        stores.owner(key(own)).await,
        Some(user),
        "a link that came after the unlinking was lost"
    );
    stores.change(user, UserChange::Disable).await;
    let enabled = stores.change(user, UserChange::Enable).await;
    assert_eq!(enabled.state, Life::Active);
    let with_etag = Mutation { etag: Some(enabled.etag()), ..mutation(user, rename("new")) };
    let renamed = stores.mutate(with_etag).await.expect("the etag is current").into_user().unwrap();
    let rehearsed =
        stores.mutate(Mutation { dry_run: true, ..mutation(user, rename("dry")) }).await.unwrap();
    assert_eq!(rehearsed.into_user().unwrap(), renamed, "a dry run");
    stores.change(other, creation(others)).await;
    let taken = stores.mutate(mutation(user, link(others))).await.unwrap_err();
    assert!(matches!(&taken, Error::IdentityTaken { owner, .. } if *owner == other), "{taken:?}");
    stores.change(other, UserChange::Unlink(identifier(others))).await;
    stores.change(user, link(others)).await;
    let request = Some(IdempotencyKey { key: format!("turn {n}"), request_hash: 1 });
    let asked = Mutation { request, ..mutation(user, UserChange::Disable) };
    stores.mutate(asked.clone()).await.unwrap();
    stores.change(user, UserChange::Enable).await;
    let again = stores.mutate(asked).await.unwrap().into_user().unwrap();
    assert_eq!(again.state, Life::Active, "a repeated request shows the earlier user");
    for name in [own, others] {
        stores.change(user, UserChange::Unlink(identifier(name))).await;
    }
}

/// Requests that are repeated together, right after changes of their users by other routers.
async fn check_repeated(stores: &Alternating, n: usize) {
    let asked = [2 * n, 2 * n + 1].map(|user| {
        let request = Some(IdempotencyKey { key: format!("together {user}"), request_hash: 1 });
        Mutation { request, ..mutation(users::id(user), UserChange::Disable) }
    });
    let ask = async || stores.next_store().mutations.mutate_all(asked.to_vec()).await;
    ask().await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    for user in [2 * n, 2 * n + 1] {
        stores.change(users::id(user), UserChange::Enable).await;
    }
    for outcome in ask().await {
        let user = outcome.unwrap().into_user().unwrap();
        assert_eq!(user.state, Life::Active, "a repeated request shows the earlier user");
    }
}

/// Steps of a bulk change, each right after one that affects it.
async fn check_bulk_change(stores: &Alternating, n: usize) {
    let (id, server) = (format!("bulk-{n}"), users::id(n));
    let step = async |step| {
        let kind = MutationKind::Bulk(id.clone(), step);
        let mutation = Mutation { now: Timestamp::now().into(), ..users::mutation_of(kind) };
        match stores.mutate(mutation).await.unwrap().report {
            MutationReport::BulkChange(change) => change.state,
            other => panic!("a step without effect: {other:?}"),
        }
    };
    let start = BulkStep::Start(Box::new(users::bulk_change(&id)), Arc::default());
    assert_eq!(step(start.clone()).await, BulkState::Running);
    assert_eq!(step(start).await, BulkState::Running);
    for _ in 0..3 {
        assert_eq!(step(BulkStep::Stop("ana".to_owned())).await, BulkState::Stopped);
        assert_eq!(step(BulkStep::Resume("ana".to_owned())).await, BulkState::Running);
    }
    assert_eq!(step(BulkStep::Take(server)).await, BulkState::Running);
    let save = RunStep::Save(Box::default());
    assert_eq!(step(BulkStep::Run(server, save)).await, BulkState::Running);
    let end = RunStep::End(BulkState::Completed, String::new());
    assert_eq!(step(BulkStep::Run(server, end)).await, BulkState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_sees_acknowledged_writes_of_another_router() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let stores = Alternating::new(cluster, &name).await;
    for n in 0..20 {
        check_visibility(&stores, n).await;
        check_repeated(&stores, n).await;
    }
    let create = TenantChange::Set(PolicyUpdate::default());
    stores.mutate(users::tenant_mutation(create)).await.unwrap();
    for n in 0..10 {
        check_bulk_change(&stores, n).await;
    }
    let database = cluster.client().await.database(&name);
    State::read(&database).await;
    database.drop().await.unwrap();
}

/// An export through one router begins right after a change that the other has acknowledged: a
/// user, a tenant, or a hold without an owner, on any shard.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_sees_acknowledged_writes_of_another_router() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let [writer, reader] = Alternating::new(cluster, &name).await.stores;
    let write = async |mutation| writer.mutations.mutate(mutation).await.map(drop).unwrap();
    for n in 0..6 {
        let user = users::id(n);
        write(mutation(user, UserChange::Create(NewUser::default()))).await;
        let snapshot = reader.search.snapshot().await.unwrap().unwrap();
        let found = snapshot.scan(&Tenant::DEFAULT, None, 100).await.unwrap().unwrap();
        assert!(
            found.readable().any(|one| one.user.id().unwrap() == user),
            "the export lacks user {n}"
        );

        let tenant = Tenant::parse(&format!("tenant{n}")).unwrap();
        let create = users::tenant_mutation(TenantChange::Set(PolicyUpdate::default()));
        write(Mutation { tenant: tenant.clone(), ..create }).await;
        let snapshot = reader.search.snapshot().await.unwrap().unwrap();
        let found = snapshot.tenant(&tenant).await.unwrap().unwrap();
        assert!(found.is_some(), "the export lacks tenant {n}");

        let until = Timestamp::now().plus(Duration::from_secs(3_600));
        let hold = Hold { key: key(n), until, guard: false, rules_version: 1 };
        let import = users::mutation_of(MutationKind::ImportHold(hold.clone()));
        write(Mutation { now: Timestamp::now().into(), ..import }).await;
        let snapshot = reader.search.snapshot().await.unwrap().unwrap();
        let holds = snapshot.ownerless_holds(&Tenant::DEFAULT, None, 100).await.unwrap().unwrap();
        assert!(holds.iter().any(|found| found.key == hold.key), "the export lacks hold {n}");
    }
    cluster.client().await.database(&name).drop().await.unwrap();
}

const PLAN: Plan = Plan {
    callers: 3,
    names: 8,
    users: 4,
    gets: true,
    creates: true,
    merges: false,
    pause: Duration::from_millis(1),
};

const MERGES: Plan =
    Plan { names: 2 * Group::NAMES, users: 2 * Group::USERS, merges: true, ..PLAN };

/// Callers that alternate between the routers, until this number of mutations.
async fn history(plan: Plan, mutations: usize) {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let database = cluster.client().await.database(&name);
    let caller: Arc<dyn Caller> = Arc::new(Alternating::new(cluster, &name).await);
    let load = Load::start(plan, std::slice::from_ref(&caller)).await;
    while load.ledger.count().mutations < mutations {
        sleep(Duration::from_millis(20)).await;
    }
    let (ledger, before) = load.stop().await;
    let shards: Vec<_> = cluster.shards.iter().map(|shard| &shard.members[0]).collect();
    no_transaction(&shards).await;
    let after = State::read(&database).await;
    after.is_found(&*caller).await;
    let what = if plan.merges { "history of merges" } else { "history" };
    print_line(&format!(
        "{what} by two routers alternately: {}; {:?}",
        ledger.count(),
        ledger.reasons()
    ));
    ledger.check(&before, &after);
    database.drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_by_two_routers_are_linearizable() {
    history(PLAN, 150).await;
    history(MERGES, 100).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_routers() {
    for _ in 0..5 {
        history(PLAN, 3_000).await;
        history(MERGES, 2_000).await;
    }
}
