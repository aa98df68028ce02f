//! Inboxes in the embedded store.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use polynym_directory::Mutations;
use polynym_directory::stores::{Delivery, Inboxes};
use polynym_embedded::{self as embedded, Embedded};

use crate::support::scenarios::deliveries::{START, delivery};
use crate::support::users;

/// Later deliveries remove expired notices and their records.
#[tokio::test]
async fn expired_records_are_removed() {
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
    // An uncertain clock expires nothing.
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
