//! Two routers before one cluster. A router takes the time of a snapshot from its own clock, and
//! each of these has its own: what was acknowledged by way of one, a mutation by way of the other
//! must not miss, also where it writes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, Consistency, Error, IdempotencyKey, Mutation, NewUser, Outcome, State as Life,
    Timestamp, Update, User, UserChange, View,
};
use polynym_identifier::IdentityKey;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Reply, identifier, key};
use crate::group::Group;
use crate::load::{Load, Plan};
use crate::place::{cluster, fresh, open, prepare_sharded, print_line};
use crate::servers::Sharded;
use crate::users;

/// Stores on one database, each by way of a router of its own, which take turns.
struct Turns {
    stores: [Backend; 2],
    next: AtomicUsize,
}

impl Turns {
    async fn new(cluster: &Sharded, name: &str) -> Self {
        let other = cluster.another_router().await;
        let one = open(&cluster.uri(name), Options::default(), false).await;
        let two = open(&cluster.uri_at(other, name), Options::default(), false).await;
        Self { stores: [one, two], next: AtomicUsize::new(0) }
    }

    /// The store whose turn it is.
    fn turn(&self) -> Backend {
        self.stores[self.next.fetch_add(1, Relaxed) % self.stores.len()].clone()
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.turn().mutations.mutate(mutation).await
    }

    /// Carries out a change that is possible; answers with the user.
    async fn change(&self, user: LocalityId, change: UserChange) -> User {
        let what = format!("{change:?}");
        let outcome = self.mutate(mutation(user, change)).await;
        outcome.unwrap_or_else(|error| panic!("{what}: {error:?}")).into_user().unwrap()
    }

    async fn owner(&self, key: IdentityKey) -> Option<LocalityId> {
        let mut resolved = self
            .turn()
            .lookups
            .resolve(&[key], Consistency::Latest, View::Full, Duration::ZERO)
            .await
            .unwrap();
        resolved.found.remove(0).unwrap().map(|found| found.user.decode().unwrap().id)
    }
}

#[async_trait]
impl Caller for Turns {
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply {
        Direct { store: self.turn(), consistency: Consistency::Latest }.call(call, request).await
    }
}

fn mutation(user: LocalityId, change: UserChange) -> Mutation {
    Mutation { time: Timestamp::now(), ..users::mutation(user, change) }
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

/// Refusals, changes that change nothing, dry runs and requests sent again: each right after what
/// makes it otherwise.
async fn take_turns(turns: &Turns, n: usize) {
    let (user, other) = (users::id(2 * n), users::id(2 * n + 1));
    let (own, others) = (2 * n % 64, (2 * n + 1) % 64);
    turns.change(user, creation(own)).await;
    turns.change(user, UserChange::Unlink(identifier(own))).await;
    turns.change(user, link(own)).await;
    assert_eq!(
        turns.owner(key(own)).await,
        Some(user),
        "a link that came after the unlinking was lost"
    );
    turns.change(user, UserChange::Disable).await;
    let enabled = turns.change(user, UserChange::Enable).await;
    assert_eq!(enabled.state, Life::Active);
    let with_etag = Mutation { etag: Some(enabled.etag()), ..mutation(user, rename("new")) };
    let renamed =
        turns.mutate(with_etag).await.expect("an etag that is fresh").into_user().unwrap();
    let rehearsed =
        turns.mutate(Mutation { dry_run: true, ..mutation(user, rename("dry")) }).await.unwrap();
    assert_eq!(rehearsed.into_user().unwrap(), renamed, "a dry run");
    turns.change(other, creation(others)).await;
    let taken = turns.mutate(mutation(user, link(others))).await.unwrap_err();
    assert!(matches!(&taken, Error::IdentityTaken { owner, .. } if *owner == other), "{taken:?}");
    turns.change(other, UserChange::Unlink(identifier(others))).await;
    turns.change(user, link(others)).await;
    let request = Some(IdempotencyKey { key: format!("turns {n}"), request_hash: 1 });
    let asked = Mutation { request, ..mutation(user, UserChange::Disable) };
    turns.mutate(asked.clone()).await.unwrap();
    turns.change(user, UserChange::Enable).await;
    let again = turns.mutate(asked).await.unwrap().into_user().unwrap();
    assert_eq!(again.state, Life::Active, "a request that was sent again shows the user as it was");
    for name in [own, others] {
        turns.change(user, UserChange::Unlink(identifier(name))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_sees_what_was_acknowledged_by_another_router() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let turns = Turns::new(cluster, &name).await;
    for n in 0..20 {
        take_turns(&turns, n).await;
    }
    let database = cluster.client().await.database(&name);
    State::read(&database).await;
    database.drop().await.unwrap();
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

/// Callers whose calls go by the one router and the other in turn, until there were so many
/// mutations.
async fn history(plan: Plan, mutations: usize) {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let database = cluster.client().await.database(&name);
    let caller: Arc<dyn Caller> = Arc::new(Turns::new(cluster, &name).await);
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
        "{what} by two routers in turn: {}; {:?}",
        ledger.count(),
        ledger.reasons()
    ));
    ledger.check(&before, &after);
    database.drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_by_two_routers_are_linearizable() {
    history(PLAN, 300).await;
    history(MERGES, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_routers() {
    for _ in 0..5 {
        history(PLAN, 3_000).await;
        history(MERGES, 2_000).await;
    }
}
