//! The server's TTL indexes, and the index for expiry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{DateTime, Document, doc};
use polynym_directory::{
    Delivery, Histories, InboxLimits, Inboxes, Mutation, Mutations, Notice, NoticeContent,
    Policies, Reads, Record, Search, Tenant, Timestamp, UserChange,
};
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier};
use polynym_mongodb::Mongo;
use tokio::time::sleep;

use crate::servers::{self, Databases, InDatabase};
use crate::support::users;

const HOUR: i64 = 60 * 60 * 1_000;
/// The time limit, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn handle(name: &str) -> Identifier {
    Identifier::parse(RawIdentifier::Handle(name)).unwrap()
}

/// Changes user 1 some hours ago, with holds of handles for an hour.
async fn change(store: &Mongo, hours_ago: i64, change: UserChange) {
    let holds = BTreeMap::from([(Kind::Handle, Duration::from_secs(60 * 60))]);
    let policies = Arc::new(Policies { holds, ..Policies::default() });
    let time = Timestamp::from_millis(Timestamp::now().as_millis() - hours_ago * HOUR);
    let mutation = Mutation { policies, now: time.into(), ..users::mutation(users::id(1), change) };
    store.mutate(mutation).await.unwrap();
}

/// The margin covers clock differences of an hour.
#[tokio::test(flavor = "multi_thread")]
async fn expired_claims_are_removed() {
    let store = Databases::of_set(servers::one_member().await, "").factory().mongo().await.unwrap();
    store.mutate(users::creation(1)).await.unwrap();
    let names = ["long-over", "just-over", "held", "linked"];
    for name in names {
        change(&store, 3, UserChange::Link(users::identity(handle(name)))).await;
    }
    for (name, hours_ago) in names.into_iter().zip([3, 1, 0]) {
        change(&store, hours_ago, UserChange::Unlink(handle(name))).await;
    }
    let keys = names.map(|name| IdentityKey::new("default", &handle(name)));
    let since = Instant::now();
    while store.claims(&keys[..1]).await.unwrap()[0].is_some() {
        assert!(since.elapsed() < TIMEOUT, "the server has not removed it");
        sleep(Duration::from_millis(100)).await;
    }
    let left: Vec<_> = store.claims(&keys).await.unwrap().iter().map(Option::is_some).collect();
    assert_eq!(left, [false, true, true, true]);
}

/// A notice is removed some time after it has expired.
#[tokio::test(flavor = "multi_thread")]
async fn expired_notices_are_removed() {
    let store = Databases::of_set(servers::one_member().await, "").factory().mongo().await.unwrap();
    let now = Timestamp::now().as_millis();
    for (user, hours_ago) in [(1, 3), (2, 1), (3, 0)] {
        store.mutate(users::creation(user)).await.unwrap();
        let send_time = Timestamp::from_millis(now - hours_ago * HOUR);
        let content = NoticeContent { subject: "over".to_owned(), ..NoticeContent::default() };
        let notice = Notice { id: users::id(9), send_time, expire_time: None, content };
        let limits = InboxLimits { retention: Duration::from_secs(60 * 60), count: 10 };
        let delivery =
            Delivery { notice, users: vec![users::id(user)], limits, clock_uncertain: false };
        store.deliver(Arc::new(delivery)).await.unwrap();
    }
    let has = async |user| store.inbox(users::id(user), None, 10, false).await.unwrap().len() == 1;
    let since = Instant::now();
    while has(1).await {
        assert!(since.elapsed() < TIMEOUT, "the server has not removed it");
        sleep(Duration::from_millis(100)).await;
    }
    assert!(has(2).await && has(3).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_users_are_found_by_an_index() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let store = factory.mongo().await.unwrap();
    for n in 1..=50 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    store.mutate(users::mutation(users::id(7), UserChange::Delete)).await.unwrap();
    let due = store.expired_users(Timestamp::MAX, None, 10).await.unwrap();
    assert_eq!(due.iter().map(|user| user.id).collect::<Vec<_>>(), [users::id(7)]);
    let find =
        doc! { "find": "users", "filter": { "d": { "$lte": DateTime::MAX } }, "sort": { "d": 1 } };
    assert_eq!(examined(&factory, find).await, [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_of_a_tenant_are_found_by_an_index() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let store = factory.mongo().await.unwrap();
    let small = Tenant::parse("small").unwrap();
    for n in 1..=50 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    for n in [60, 70] {
        store.mutate(Mutation { tenant: small.clone(), ..users::creation(n) }).await.unwrap();
    }
    let found = store.scan(&small, None, 10).await.unwrap();
    assert_eq!(
        found.readable().map(Record::id).collect::<Vec<_>>(),
        [users::id(60), users::id(70)]
    );
    let find = doc! { "find": "users", "filter": { "t": "small" }, "sort": { "_id": 1 } };
    assert_eq!(examined(&factory, find).await, [2, 2]);
}

/// The keys and documents that MongoDB examines for a find.
async fn examined(factory: &InDatabase, find: Document) -> [i32; 2] {
    let database = servers::one_member().await.members[0].database(factory.name().await).await;
    let command = doc! { "explain": find, "verbosity": "executionStats" };
    let explained = database.run_command(command).await.unwrap();
    let counts = explained.get_document("executionStats").unwrap();
    ["totalKeysExamined", "totalDocsExamined"].map(|count| counts.get_i32(count).unwrap())
}
