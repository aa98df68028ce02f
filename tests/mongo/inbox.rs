//! Notices to users on MongoDB: concurrent servers, and calls over gRPC.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};
use mongodb::bson::{Document, doc};
use polynym_directory::stores::Inboxes;
use polynym_directory::{Mutations, UserChange};
use polynym_mongodb::{self as mongo, InitOptions, Mongo, init};

use crate::servers;
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
    let client = servers::one_member().await.client().await;
    let rows = client.database("inbox_purges").collection::<Document>("notices");
    assert_eq!(rows.count_documents(doc! {}).await.unwrap(), 0);
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
