//! Inboxes in the embedded store.

use std::sync::Arc;
use std::time::Duration;

use polynym::directory::Notice;
use polynym::directory::inbox::{Delivery, InboxStore};
use polynym::store::embedded::{self, Embedded};

use crate::support::scenarios::inbox_contract::{LIMITS, START, World, check};

#[tokio::test]
async fn the_embedded_store_keeps_inboxes() {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    check(Embedded::open(&folder.path().join("store"), options).unwrap()).await;
}

/// Later deliveries remove notices whose time is over, and what was known of them.
#[tokio::test]
async fn an_embedded_store_removes_what_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    let store = Embedded::open(&folder.path().join("store"), options).unwrap();
    let mut world = World::new(store).await;
    let user = world.users[0];
    let (first, second) = (world.notice(), world.notice());
    let second = Notice { expire_time: Some(START.plus(Duration::from_secs(20))), ..second };
    world.deliver(Notice { expire_time: None, ..first.clone() }, vec![user]).await;
    world.deliver(second.clone(), vec![user]).await;
    let mut left = Vec::new();
    // By a clock that has jumped, nothing is over.
    let notice = Notice { send_time: START.plus(Duration::from_secs(1 << 30)), ..world.notice() };
    let users = vec![world.users[1]];
    let jumped = Delivery { notice, users, limits: LIMITS, in_doubt: true };
    world.store.deliver(Arc::new(jumped)).await.unwrap();
    for days in [0, 10, 20] {
        let day = Duration::from_secs(86_400);
        let late = Notice { send_time: START.plus(days * day), ..world.notice() };
        world.deliver(Notice { expire_time: None, ..late }, vec![world.users[1]]).await;
        let mut known = 0;
        for notice in [first.id, second.id] {
            known += world.store.holders(notice, &[user]).await.unwrap().len();
        }
        left.push((known, world.store.inbox(user, None, 10, true).await.unwrap().entries.len()));
    }
    assert_eq!(left, [(2, 2), (1, 1), (0, 0)]);
}
