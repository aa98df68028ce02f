//! Inboxes in the embedded store.

use std::fs;
use std::io::Seek;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{Delivery, Error, InboxChange, Inboxes, Mutations, StoreFile, UserChange};
use polynym_embedded::{self as embedded, Embedded, IntegritySession};
use polynym_store_common::integrity::{Finding, Observer, RepairState, verify};
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use crate::support::scenarios::deliveries::{START, delivery};
use crate::support::users;
use crate::{FILE, database, open};

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
            known += store.holders(notice, START, &[user]).await.unwrap().len();
        }
        left.push((known, store.inbox(user, None, 10, true).await.unwrap().len()));
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
            let left = store.inbox(*user, None, 10, true).await.unwrap().len();
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
    let entries = store.inbox(user, None, NOTICES, false).await.unwrap();
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
    const LOOPS: usize = 32;
    let folder = tempfile::tempdir().unwrap();
    let store = store_with(folder.path(), 64, None).await;
    let (ids, all) = (Generator::new(Mode::Variable), (0..64).map(users::id).collect::<Vec<_>>());
    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..LOOPS {
        let (store, sent) = (store.clone(), large("greedy", ids.next_id(), all.clone()));
        flood.spawn(async move { store.deliver(sent).await.unwrap() });
    }
    tokio::task::yield_now().await;
    let (mut mutations, mut notices, mut delivered) = (0, 0, 0);
    while delivered < LOOPS {
        store.mutate(users::creation(100 + mutations)).await.unwrap();
        store.deliver(large("modest", ids.next_id(), vec![all[0]])).await.unwrap();
        (mutations, notices) = (mutations + 1, notices + 1);
        while let Some(ended) = flood.try_join_next() {
            assert_eq!(ended.unwrap(), vec![true; all.len()]);
            delivered += 1;
        }
    }
    // Without turns, the writer would take all deliveries at once.
    assert!(mutations >= 3 && notices >= 3, "{mutations} mutations, {notices} notices");
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

const INBOX: TableDefinition<'_, (&[u8; 16], u64), &[u8]> = TableDefinition::new("inbox");
const CONTENTS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("inbox_contents");
const CONTENT_USERS: TableDefinition<'_, (&[u8; 16], &[u8; 16]), ()> =
    TableDefinition::new("inbox_content_users");

/// The bytes of all rows of inboxes and of shared contents, and the number of these.
fn stored(folder: &Path) -> (usize, u64) {
    let transaction = database(folder).begin_read().unwrap();
    let inbox = transaction.open_table(INBOX).unwrap();
    let rows: usize = inbox.iter().unwrap().map(|row| row.unwrap().1.value().len()).sum();
    let Ok(contents) = transaction.open_table(CONTENTS) else { return (rows, 0) };
    let bytes: usize = contents.iter().unwrap().map(|row| row.unwrap().1.value().len()).sum();
    (rows + bytes, contents.len().unwrap())
}

/// The bodies of the notices of a user, the latest first.
async fn bodies(store: &Embedded, user: LocalityId) -> Vec<String> {
    let entries = store.inbox(user, None, 100, true).await.unwrap();
    entries.into_iter().filter_map(|entry| Some(entry.notice?.content.body)).collect()
}

#[tokio::test]
async fn a_large_body_is_stored_once_for_all_recipients() {
    const USERS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = store_with(folder.path(), USERS, None).await;
    let all = (0..USERS).map(users::id).collect::<Vec<_>>();
    let id = Generator::new(Mode::Variable).next_id();
    let sent = large("web", id, all.clone());
    store.deliver(sent.clone()).await.unwrap();
    for user in &all {
        assert_eq!(bodies(&store, *user).await, [sent.notice.content.body.as_str()]);
    }

    // A backup has the body, too.
    let mut copy = store.copy(&AtomicBool::new(false)).unwrap();
    let backup = folder.path().join("backup");
    copy.rewind().unwrap();
    std::io::copy(&mut copy, &mut fs::File::create(&backup).unwrap()).unwrap();
    embedded::restore(&backup, &folder.path().join("restored")).unwrap();
    let restored = open(&folder.path().join("restored")).unwrap();
    assert_eq!(bodies(&restored, all[1]).await, [sent.notice.content.body.as_str()]);

    drop(store);
    let (bytes, contents) = stored(&path);
    assert!(bytes < (16 << 10) + 100 * USERS && contents == 1, "{bytes} bytes, {contents}");

    // It goes with the last notice: those of half of the users are deleted, those of others purged.
    let store = open(&path).unwrap();
    for (n, user) in all.iter().enumerate().skip(1) {
        match n % 2 {
            0 => store.change_inbox(*user, InboxChange::Delete(id)).await.unwrap(),
            _ => drop(store.mutate(users::mutation(*user, UserChange::Purge)).await.unwrap()),
        }
    }
    assert_eq!(bodies(&store, all[0]).await, [sent.notice.content.body.as_str()]);
    store.change_inbox(all[0], InboxChange::Delete(id)).await.unwrap();
    drop(store);
    assert_eq!(stored(&path).1, 0);
}

/// Reports and repairs each fault of shared contents, and no other.
#[tokio::test]
async fn verify_repairs_shared_contents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = store_with(folder.path(), 2, None).await;
    let ids = Generator::new(Mode::Variable);
    let [lost, unlisted, stray, unknown] = [(); 4].map(|()| ids.next_id());
    let both = [users::id(0), users::id(1)];
    for id in [lost, unlisted, stray] {
        store.deliver(large("web", id, both.to_vec())).await.unwrap();
    }
    drop(store);
    assert_eq!(findings(&path, false).await, []);

    let database = database(&path);
    let transaction = database.begin_write().unwrap();
    {
        let mut contents = transaction.open_table(CONTENTS).unwrap();
        let mut content_users = transaction.open_table(CONTENT_USERS).unwrap();
        contents.remove(lost.as_bytes()).unwrap();
        for user in both {
            content_users.remove((unlisted.as_bytes(), user.as_bytes())).unwrap();
        }
        content_users.insert((stray.as_bytes(), users::id(9).as_bytes()), ()).unwrap();
        contents.insert(unknown.as_bytes(), [0; 300].as_slice()).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let store = open(&path).unwrap();
    let damaged = store.inbox(both[0], None, 10, true).await;
    assert!(matches!(damaged, Err(Error::Internal(_))), "{damaged:?}");
    drop(store);

    let finding = |word, user: Option<usize>, notice: LocalityId| {
        (word, user.map(users::id), notice.to_string())
    };
    let mut expected =
        vec![finding("stray_content", None, unknown), finding("stray_content", Some(9), stray)];
    for user in [0, 1] {
        expected.push(finding("lost_content", Some(user), lost));
        expected.push(finding("unlisted_notice", Some(user), unlisted));
    }
    expected.sort();
    assert_eq!(findings(&path, false).await, expected);
    assert_eq!(findings(&path, true).await, expected);
    assert_eq!(findings(&path, false).await, []);

    let store = open(&path).unwrap();
    for user in both {
        assert_eq!(bodies(&store, user).await.len(), 2);
        for id in [unlisted, stray] {
            store.change_inbox(user, InboxChange::Delete(id)).await.unwrap();
        }
    }
    drop(store);
    assert_eq!(stored(&path).1, 0);
}

/// Reports a notice and a content that cannot be read. A repair does not change them.
#[tokio::test]
async fn verify_reports_unreadable_notices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = store_with(folder.path(), 2, None).await;
    let (ids, both) = (Generator::new(Mode::Variable), [users::id(0), users::id(1)]);
    let shared = ids.next_id();
    store.deliver(large("web", shared, both.to_vec())).await.unwrap();
    drop(store);
    let database = database(&path);
    let transaction = database.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(INBOX).unwrap();
        rows.insert((both[0].as_bytes(), 77), b"no notice".as_slice()).unwrap();
        let mut contents = transaction.open_table(CONTENTS).unwrap();
        contents.insert(shared.as_bytes(), b"no content".as_slice()).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let unreadable = |key| ("unreadable_notice", None, key);
    let mut expected =
        [unreadable(shared.to_string()), unreadable(format!("{}/77", both[0]))].to_vec();
    expected.sort();
    for repairs in [false, true, false] {
        assert_eq!(findings(&path, repairs).await, expected);
    }
}

type Found = (&'static str, Option<LocalityId>, String);

/// The findings of a verification, which repairs them if `repairs` is set.
async fn findings(folder: &Path, repairs: bool) -> Vec<Found> {
    struct Findings(Vec<Found>, RepairState);
    impl Observer for Findings {
        fn at(&mut self, _: &'static str, _: u64, _: u64) {}
        fn found(&mut self, finding: &Finding) {
            let is_repairable = finding.fault.is_repairable();
            let expected = if is_repairable { self.1 } else { RepairState::Impossible };
            assert_eq!(finding.repair, expected);
            let notice = finding.document.clone().unwrap();
            self.0.push((finding.fault.word(), finding.user, notice));
        }
    }
    let state = if repairs { RepairState::Done } else { RepairState::Pending };
    let mut found = Findings(Vec::new(), state);
    let session = IntegritySession::open(folder).unwrap();
    verify(&session, repairs, &mut found).await.unwrap();
    found.0.sort();
    found.0
}

/// Prints the figures of docs/security.md for large notices to many users.
#[tokio::test]
#[ignore = "measures an idle machine"]
async fn long_notices_to_many_users() {
    const DELIVERIES: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let store = store_with(folder.path(), 1_000, None).await;
    let size = || fs::metadata(folder.path().join("store").join(FILE)).unwrap().len() >> 20;
    let (ids, all) =
        (Generator::new(Mode::Variable), (0..1_000).map(users::id).collect::<Vec<_>>());
    let (before, begin) = (size(), Instant::now());
    for _ in 0..DELIVERIES {
        store.deliver(large("greedy", ids.next_id(), all.clone())).await.unwrap();
    }
    let each = begin.elapsed() / DELIVERIES as u32;
    println!("{DELIVERIES} deliveries: {each:.2?} each, {} MiB more", size() - before);

    let begin = Instant::now();
    for user in &all {
        let page = store.inbox(*user, None, 50, true).await.unwrap();
        assert_eq!(page.len(), DELIVERIES.min(50));
    }
    println!("a page of 50: {:.2?}", begin.elapsed() / 1_000);
}
