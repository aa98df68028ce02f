//! Inboxes of one store: the embedded store removes expired notices, and servers on MongoDB deliver
//! concurrently.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::stores::{Delivery, InboxLimits, Inboxes};
use polynym::directory::{Mutations, Notice, NoticeContent, Timestamp};
use polynym::store::embedded::{self, Embedded};
use polynym::store::mongo::{self, InitOptions, Mongo, init};

use crate::servers;
use crate::support::users;

const LIMITS: InboxLimits = InboxLimits { retention: Duration::from_secs(1_000_000), count: 130 };

/// 2030-01-01T00:00:00Z. MongoDB removes expired notices by its own clock.
const START: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// A delivery of a notice that is sent then.
fn delivery(id: LocalityId, send_time: Timestamp, user: LocalityId) -> Delivery {
    let content = NoticeContent { subject: "x".to_owned(), ..Default::default() };
    let notice = Notice { id, send_time, expire_time: None, content };
    Delivery { notice, users: vec![user], limits: LIMITS, clock_uncertain: false }
}

/// Later deliveries remove notices whose time is over, and what was known of them.
#[tokio::test]
async fn an_embedded_store_removes_what_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    let store = Embedded::open(&folder.path().join("store"), options).unwrap();
    for n in 0..2 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    let (ids, user, other) = (Generator::new(Mode::Variable), users::id(0), users::id(1));
    let (first, mut second) =
        (delivery(ids.next_id(), START, user), delivery(ids.next_id(), START, user));
    second.notice.expire_time = Some(START.plus(Duration::from_secs(20)));
    let notices = [first.notice.id, second.notice.id];
    // By a clock that has jumped, nothing is over.
    let late = START.plus(Duration::from_secs(1 << 30));
    let jumped = Delivery { clock_uncertain: true, ..delivery(ids.next_id(), late, other) };
    for delivery in [first, second, jumped] {
        store.deliver(Arc::new(delivery)).await.unwrap();
    }
    let mut left = Vec::new();
    for days in [0, 10, 20] {
        let time = START.plus(days * Duration::from_secs(86_400));
        store.deliver(Arc::new(delivery(ids.next_id(), time, other))).await.unwrap();
        let mut known = 0;
        for notice in notices {
            known += store.holders(notice, &[user]).await.unwrap().len();
        }
        left.push((known, store.inbox(user, None, 10, true).await.unwrap().entries.len()));
    }
    assert_eq!(left, [(2, 2), (1, 1), (0, 0)]);
}

/// Deliveries of many callers to one inbox: each notice is there once, and a full inbox is begun
/// anew once.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_deliver_at_once_lose_and_double_nothing() {
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
