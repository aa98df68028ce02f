//! Notices to users on MongoDB: concurrent servers, and calls over gRPC.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};
use polynym_directory::stores::Inboxes;
use polynym_mongodb::{self as mongo, InitOptions, Mongo, init};

use crate::servers;
use crate::support::scenarios::deliveries::{START, delivery};
use crate::support::scenarios::inbox::{
    InboxClient, inboxes_are_bounded, notices_are_sent_and_read, rules_send_notices,
};

/// Concurrent deliveries to one inbox: each notice is stored once, and a full bucket is replaced
/// once.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_deliveries_lose_and_duplicate_nothing() {
    let uri = servers::one_member().await.uri("inbox_race", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let open = async || Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    let stores = [open().await, open().await, open().await];
    let ids = Generator::new(Mode::Variable);
    let user = ids.next_id();
    let notices: Vec<_> = (0..120).map(|_| ids.next_id()).collect();
    let sending = stores.iter().map(|store| {
        let (store, mut notices) = (store.clone(), notices.clone());
        tokio::spawn(async move {
            fastrand::shuffle(&mut notices);
            for id in notices {
                if store.holders(id, &[user]).await.unwrap().is_empty() {
                    store.deliver(Arc::new(delivery(id, START, user))).await.unwrap();
                }
            }
        })
    });
    for sent in sending.collect::<Vec<_>>() {
        sent.await.unwrap();
    }
    let part = stores[0].inbox(user, None, usize::MAX, false).await.unwrap();
    let mut found: Vec<_> =
        part.entries.iter().map(|entry| entry.notice.as_ref().unwrap().id).collect();
    let positions: Vec<_> = part.entries.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, (1..=120).rev().collect::<Vec<_>>());
    found.sort_unstable();
    let mut expected = notices;
    expected.sort_unstable();
    assert_eq!(found, expected);
    for store in stores {
        store.close().await;
    }
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
