//! Notices to users on MongoDB: concurrent servers, and calls over gRPC.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use locality_uuid::{Generator, Mode};
use mongodb::Database;
use mongodb::bson::{Document, doc};
use polynym_directory::{Directory, InboxChange, Inboxes, Limits, Mutations, Tenant, UserChange};
use polynym_mongodb::{self as mongo, InitOptions, Mongo, init};

use crate::servers::{self, Layout, ReplicaSet};
use crate::support::scenarios::deliveries::{START, delivery};
use crate::support::scenarios::inbox::{
    InboxClient, inboxes_are_bounded, notices_are_sent_and_read, rules_send_notices,
};
use crate::support::users;

/// Concurrent deliveries to one inbox: each notice is stored once.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_deliveries_lose_and_duplicate_nothing() {
    let uri = servers::one_member().await.uri("inbox_race", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let open = async || Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    let stores = [open().await, open().await, open().await];
    let ids = Generator::new(Mode::Sequential);
    let user = users::id(1);
    stores[0].mutate(users::creation(1)).await.unwrap();
    let notices: Vec<_> = (0..120).map(|_| ids.next_id()).collect();
    let sending = stores.iter().map(|store| {
        let (store, mut notices) = (store.clone(), notices.clone());
        tokio::spawn(async move {
            fastrand::shuffle(&mut notices);
            for id in notices {
                if store.holders(id, START, &[user]).await.unwrap().is_empty() {
                    store.deliver(Arc::new(delivery(id, START, user))).await.unwrap();
                }
            }
        })
    });
    for sent in sending.collect::<Vec<_>>() {
        sent.await.unwrap();
    }
    let entries = stores[0].inbox(user, None, 1_000, false).await.unwrap();
    let found: Vec<_> = entries.iter().map(|entry| entry.notice.as_ref().unwrap().id).collect();
    assert_eq!(found, notices.into_iter().rev().collect::<Vec<_>>());
    for store in stores {
        store.close().await;
    }
}

/// A purge leaves no notice behind, whenever a delivery comes.
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_during_a_purge_leave_nothing() {
    const USERS: usize = 20;
    let uri = servers::one_member().await.uri("inbox_purges", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    let ids = Arc::new(Generator::new(Mode::Variable));
    for n in 0..USERS {
        store.mutate(users::creation(n)).await.unwrap();
    }
    let sending: Vec<_> = (0..USERS)
        .map(|n| {
            let (store, ids) = (store.clone(), ids.clone());
            tokio::spawn(async move {
                let deliver = || delivery(ids.next_id(), START, users::id(n));
                while store.deliver(Arc::new(deliver())).await.unwrap() == [true] {}
            })
        })
        .collect();
    for n in 0..USERS {
        store.mutate(users::mutation(users::id(n), UserChange::Purge)).await.unwrap();
    }
    for sent in sending {
        sent.await.unwrap();
    }
    store.close().await;
    let client = servers::one_member().await.client().await;
    let rows = client.database("inbox_purges").collection::<Document>("notices");
    assert_eq!(rows.count_documents(doc! {}).await.unwrap(), 0);
}

/// The answer of a purge does not wait for the clean-up of its inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_that_hangs_delays_no_answer() {
    let set = ReplicaSet::start(Layout::default()).await;
    let uri = set.uri("inbox_slow", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    for n in 0..2 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    // The first command on notices is part of the transaction, and the clean-up has the others.
    let data = doc! {
        "failCommands": ["find", "delete"], "namespace": "inbox_slow.notices",
        "blockConnection": true, "blockTimeMS": 8_000,
    };
    let fail = doc! { "configureFailPoint": "failCommand", "mode": { "skip": 1 }, "data": data };
    set.members[0].admin(fail).await.unwrap();
    let start = Instant::now();
    store.mutate(users::mutation(users::id(0), UserChange::Purge)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(7), "it took {:?}", start.elapsed());
    // The store is closed once the clean-up has ended.
    store.close().await;
    assert!(start.elapsed() > Duration::from_secs(6), "it took {:?}", start.elapsed());
}

/// What the profiler of a database has seen of notices: the documents that were read, the largest
/// reply to a find, and the updates. Empties the profile.
async fn profiled(database: &Database, work: impl Future<Output = ()>) -> (i64, i64, usize) {
    // The profile that MongoDB creates by itself has a place for some hundred statements.
    let create = doc! { "create": "system.profile", "capped": true, "size": 32 << 20 };
    database.run_command(create).await.unwrap();
    database.run_command(doc! { "profile": 2 }).await.unwrap();
    work.await;
    database.run_command(doc! { "profile": 0 }).await.unwrap();
    let profile = database.collection::<Document>("system.profile");
    let of_notices = doc! { "ns": format!("{}.notices", database.name()) };
    let done: Vec<_> = profile.find(of_notices).await.unwrap().try_collect().await.unwrap();
    profile.drop().await.unwrap();
    let number = |done: &Document, field: &str| i64::from(done.get_i32(field).unwrap_or(0));
    let examined = done.iter().map(|done| number(done, "docsExamined")).sum();
    let largest = done.iter().map(|done| number(done, "responseLength")).max();
    let updates = done.iter().filter(|done| done.get_str("op").unwrap() == "update").count();
    (examined, largest.unwrap_or_default(), updates)
}

/// A mark or a deletion reads the row of its notice, and no mark transfers contents.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_an_inbox_read_what_they_change() {
    const NOTICES: usize = 1_100;
    let uri = servers::one_member().await.uri("inbox_marks", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    let (ids, user) = (Generator::new(Mode::Sequential), users::id(1));
    store.mutate(users::creation(1)).await.unwrap();
    let notices: Vec<_> = (0..NOTICES).map(|_| ids.next_id()).collect();
    for notices in notices.chunks(20) {
        let sent = notices.iter().map(|id| {
            let mut delivery = delivery(*id, START, user);
            delivery.notice.content.body = "x".repeat(16 << 10);
            delivery.limits.count = 10_000;
            store.deliver(Arc::new(delivery))
        });
        futures_util::future::join_all(sent).await.into_iter().for_each(|one| drop(one.unwrap()));
    }

    let database = servers::one_member().await.client().await.database("inbox_marks");
    let change = async |change| {
        let work = async { store.change_inbox(user, change).await.unwrap() };
        profiled(&database, work).await
    };
    let (examined, _, updates) = change(InboxChange::Read(vec![notices[3], notices[900]])).await;
    assert_eq!((examined, updates), (2, 2));
    let (examined, _, updates) = change(InboxChange::Delete(notices[500])).await;
    assert_eq!((examined, updates), (1, 1));

    let directory =
        Directory::new(store.backend(), Generator::new(Mode::Variable), Limits::default());
    let (context, latest) = (users::context(Tenant::DEFAULT, "MarkRead"), notices[NOTICES - 1]);
    let mark = async {
        let (user, latest) = (user.to_string(), latest.to_string());
        directory.mark_read(&context, &user, &[latest], None).await.unwrap();
    };
    let (examined, _, updates) = profiled(&database, mark).await;
    assert!(examined <= 501 && updates == 1, "{examined} documents, {updates} updates");

    let (_, largest, updates) = change(InboxChange::ReadUpTo(START)).await;
    assert_eq!(updates, NOTICES - 4);
    assert!(largest < 100_000, "{largest} bytes");
    let entries = store.inbox(user, None, 2 * NOTICES, false).await.unwrap();
    assert!(entries.iter().all(|entry| entry.read || entry.notice.is_none()));
    assert_eq!(entries.iter().filter(|entry| entry.notice.is_none()).count(), 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_has_inboxes() {
    let uri = servers::one_member().await.uri("inbox", "");
    notices_are_sent_and_read(InboxClient::mongo(&uri).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_inboxes() {
    let uri = servers::three_shards().await.uri("inbox");
    notices_are_sent_and_read(InboxClient::mongo(&uri).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_send_notices_on_a_replica_set() {
    let uri = servers::one_member().await.uri("inbox_rules", "");
    rules_send_notices(InboxClient::mongo(&uri).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inboxes_are_bounded_on_a_replica_set() {
    let uri = servers::one_member().await.uri("inbox_bounds", "");
    inboxes_are_bounded(InboxClient::mongo(&uri).await).await;
}
