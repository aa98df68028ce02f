//! Inboxes in the embedded store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::stores::{Delivery, InboxChange, Inboxes};
use polynym_directory::{Error, Mutations};
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

/// Expired notices do not pile up: each delivery removes more of them than it adds.
#[tokio::test]
async fn removal_keeps_up_with_deliveries() {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    let store = Embedded::open(&folder.path().join("store"), options).unwrap();
    let all: Vec<_> = (0..40).map(users::id).collect();
    for n in 0..all.len() {
        store.mutate(users::creation(n)).await.unwrap();
    }
    let ids = Generator::new(Mode::Variable);
    for hour in 0..4 {
        let time = START.plus(hour * Duration::from_secs(3_600));
        let mut sent = delivery(ids.next_id(), time, all[0]);
        sent.users.clone_from(&all);
        sent.notice.expire_time = Some(time.plus(Duration::from_secs(60)));
        store.deliver(Arc::new(sent)).await.unwrap();
        for user in &all {
            let left = store.inbox(*user, None, 10, true).await.unwrap().entries.len();
            assert_eq!(left, 1, "expired notices are left after {hour} hours");
        }
    }
}

/// Notices are marked in parts, and all of them.
#[tokio::test]
async fn many_notices_are_marked_as_read() {
    const NOTICES: usize = 450;
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    let store = Embedded::open(&folder.path().join("store"), options).unwrap();
    store.mutate(users::creation(0)).await.unwrap();
    let (ids, user) = (Generator::new(Mode::Variable), users::id(0));
    let deliveries = (0..NOTICES).map(|n| {
        let time = START.plus(Duration::from_secs(n as u64));
        let mut sent = delivery(ids.next_id(), time, user);
        sent.limits.count = NOTICES as u64;
        store.deliver(Arc::new(sent))
    });
    futures_util::future::try_join_all(deliveries).await.unwrap();
    let up_to = START.plus(Duration::from_secs(NOTICES as u64 - 3));
    store.change_inbox(user, InboxChange::ReadUpTo(up_to)).await.unwrap();
    let entries = store.inbox(user, None, NOTICES, false).await.unwrap().entries;
    let unread = entries.iter().filter(|entry| !entry.read).count();
    assert_eq!((entries.len(), unread), (NOTICES, 2));
}

/// A store with this number of users.
async fn store_with(folder: &Path, users: usize, reserved: Option<u64>) -> Arc<Embedded> {
    let options =
        embedded::Options { create: true, reserved_disk_bytes: reserved, ..Default::default() };
    let store = Arc::new(Embedded::open(&folder.join("store"), options).unwrap());
    for n in 0..users {
        store.mutate(users::creation(n)).await.unwrap();
    }
    store
}

/// A notice of 16 KiB from `sender`.
fn large(sender: &str, id: LocalityId, users: Vec<LocalityId>) -> Arc<Delivery> {
    let mut large = delivery(id, START, users[0]);
    large.notice.content.sender = sender.to_owned();
    large.notice.content.body = "x".repeat(16 << 10);
    large.users = users;
    Arc::new(large)
}

/// Mutations and the notices of others take turns with a caller who sends one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_take_turns_with_mutations_and_other_senders() {
    const LOOPS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let store = store_with(folder.path(), 64, None).await;
    let (ids, all) = (Generator::new(Mode::Variable), (0..64).map(users::id).collect::<Vec<_>>());
    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..LOOPS {
        let (store, sent) = (store.clone(), large("greedy", ids.next_id(), all.clone()));
        flood.spawn(async move { store.deliver(sent).await.unwrap() });
    }
    tokio::task::yield_now().await;
    let (mut mutations, mut notices) = (0, 0);
    while flood.try_join_next().is_none() {
        store.mutate(users::creation(100 + mutations)).await.unwrap();
        store.deliver(large("modest", ids.next_id(), vec![all[0]])).await.unwrap();
        (mutations, notices) = (mutations + 1, notices + 1);
    }
    // The first of eight deliveries in turns ends after at least 25 of their 32 parts.
    // Without turns there would be one at most.
    assert!(mutations >= 3 && notices >= 3, "{mutations} mutations, {notices} notices");
    while let Some(delivered) = flood.join_next().await {
        assert_eq!(delivered.unwrap(), vec![true; all.len()]);
    }
}

#[tokio::test]
async fn a_nearly_full_disk_rejects_notices_and_takes_users() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with(folder.path(), 1, Some(1 << 60)).await;
    let id = Generator::new(Mode::Variable).next_id();
    let refused = store.deliver(large("greedy", id, vec![users::id(0)])).await;
    assert!(matches!(refused, Err(Error::DiskFull)), "{refused:?}");
    store.mutate(users::creation(1)).await.unwrap();
}
