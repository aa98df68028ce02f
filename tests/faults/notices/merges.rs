//! Merges, unmerges and purges during deliveries: no user misses or repeats a notice, and a purge
//! leaves no trace.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, doc};
use polynym_proto::v1;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Code;

use super::delivery::{Size, Stage, assert_in_order, number};
use super::servers::Servers;
use crate::calls::{handle, merging};
use crate::load::Random;
use crate::stores::{TIMEOUT, print_line};
use crate::support::database;

/// Pairs of users that are continually merged and unmerged: numbers 0 and 1, 2 and 3, and so on.
const PAIRS: usize = 5;
/// Purged users. The last two are merged by then.
const PURGED: std::ops::Range<usize> = 2 * PAIRS..2 * PAIRS + 4;
const SENDERS: usize = 3;
/// The notices of each sender before the purge, and again after it. The purge takes as long as it
/// takes: they go on until it is done.
const NOTICES: usize = 12;

/// Merges and unmerges two users until all is sent. Returns the number of merges.
async fn merge_until(stage: &Stage, pair: usize, is_sent: &AtomicBool) -> usize {
    let mut merges = 0;
    while !is_sent.load(Relaxed) {
        set_merged(stage, pair, true).await;
        set_merged(stage, pair, false).await;
        merges += 1;
        sleep(Duration::from_millis(10)).await;
    }
    merges
}

/// Merges or unmerges the users of a pair.
async fn set_merged(stage: &Stage, pair: usize, is_merged: bool) {
    let (primary, secondary) = (&stage.users[2 * pair], &stage.users[2 * pair + 1]);
    let done = if is_merged {
        let merge = stage.until_answered(|mut client| {
            let request = merging(primary, secondary);
            async move { client.registry.merge_users(request).await }
        });
        merge.await.map(drop)
    } else {
        let (primary_user_id, secondary_user_id) = (primary.clone(), secondary.clone());
        let request =
            v1::UnmergeUsersRequest { primary_user_id, secondary_user_id, ..Default::default() };
        let unmerge = stage.until_answered(|mut client| {
            let request = request.clone();
            async move { client.registry.unmerge_users(request).await }
        });
        unmerge.await.map(drop)
    };
    done.unwrap_or_else(|status| panic!("pair {pair}, merged: {is_merged}: {status:?}"));
}

/// Which notices are sent, and whether the purge is done.
#[derive(Default)]
struct Progress {
    sent: AtomicUsize,
    is_purged: AtomicBool,
}

/// Sends notices to one user of each pair and to the purged ones, until enough were sent after the
/// purge. Returns the recipients of each notice.
async fn send_all(stage: &Stage, sender: usize, progress: &Progress) -> Vec<BTreeSet<usize>> {
    let mut random = Random::default();
    let (mut notices, mut late) = (Vec::new(), 0);
    while late < NOTICES {
        late += usize::from(progress.is_purged.load(Relaxed));
        let n = notices.len();
        let of_pairs = (0..PAIRS).map(|pair| 2 * pair + random.below(2));
        let users: BTreeSet<_> = of_pairs.chain(PURGED).collect();
        let gone = stage.send((sender, n), &users).await;
        assert!(gone.iter().all(|user| PURGED.contains(user)), "gone: {gone:?}");
        notices.push(users);
        progress.sent.fetch_add(1, Relaxed);
    }
    notices
}

async fn purge_all(stage: &Stage) {
    set_merged(stage, PURGED.end / 2 - 1, true).await;
    for user in PURGED.start..PURGED.end - 1 {
        let request =
            v1::PurgeUserRequest { user_id: stage.users[user].clone(), ..Default::default() };
        let purged = stage.until_answered(|mut client| {
            let request = request.clone();
            async move { client.admin.purge_user(request).await }
        });
        purged.await.unwrap_or_else(|status| panic!("{user}: {status:?}"));
    }
}

/// Compares the inboxes of a pair, separate and merged, with the sent notices.
async fn check_pair(stage: &Stage, pair: usize, sent: &[Vec<BTreeSet<usize>>]) {
    let own = |user: usize| -> BTreeSet<_> {
        let all = sent.iter().enumerate().flat_map(|(sender, notices)| {
            notices.iter().enumerate().map(move |(n, users)| ((sender, n), users))
        });
        all.filter(|(_, users)| users.contains(&user)).map(|(notice, _)| notice).collect()
    };
    let [of_primary, of_secondary] = [2 * pair, 2 * pair + 1].map(own);
    let list = async |user| -> Vec<_> {
        let shown = stage.list(user, false, 7).await;
        let numbers: Vec<_> = shown.iter().map(number).collect();
        let different: BTreeSet<_> = numbers.iter().copied().collect();
        assert_eq!(numbers.len(), different.len(), "user {user} sees one twice: {numbers:?}");
        assert_in_order(&numbers);
        assert_eq!(stage.unread(user).await, numbers.len());
        numbers
    };

    let primary: BTreeSet<_> = list(2 * pair).await.into_iter().collect();
    let secondary: BTreeSet<_> = list(2 * pair + 1).await.into_iter().collect();
    assert!(primary.is_superset(&of_primary), "pair {pair}: {primary:?} lacks some");
    assert!(secondary.is_subset(&of_secondary), "pair {pair}: {secondary:?} has others'");
    let all: BTreeSet<_> = of_primary.union(&of_secondary).copied().collect();
    assert_eq!(primary.union(&secondary).copied().collect::<BTreeSet<_>>(), all, "pair {pair}");

    set_merged(stage, pair, true).await;
    let merged: BTreeSet<_> = list(2 * pair).await.into_iter().collect();
    assert_eq!(merged, all, "pair {pair}, merged");
}

async fn merges_and_purges(servers: Servers) -> Arc<Stage> {
    let size = Size { users: PURGED.end, senders: SENDERS, notices: 0, recipients: 0, page: 7 };
    let stage = Arc::new(Stage::new(servers, size).await);
    let (is_sent, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(Progress::default()));
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (stage, progress) = (stage.clone(), progress.clone());
        senders.spawn(async move { (sender, send_all(&stage, sender, &progress).await) });
    }
    let mut mergers = JoinSet::new();
    for pair in 0..PAIRS {
        let (stage, is_sent) = (stage.clone(), is_sent.clone());
        mergers.spawn(async move { merge_until(&stage, pair, &is_sent).await });
    }
    let since = Instant::now();
    while progress.sent.load(Relaxed) < SENDERS * NOTICES {
        assert!(since.elapsed() < 3 * TIMEOUT, "too few notices are sent");
        sleep(Duration::from_millis(1)).await;
    }
    purge_all(&stage).await;
    progress.is_purged.store(true, Relaxed);

    let mut by_sender = senders.join_all().await;
    by_sender.sort_by_key(|(sender, _)| *sender);
    let sent: Vec<_> = by_sender.into_iter().map(|(_, notices)| notices).collect();
    is_sent.store(true, Relaxed);
    let merges: usize = mergers.join_all().await.into_iter().sum();
    assert!(merges > PAIRS, "{merges} merges");
    for pair in 0..PAIRS {
        check_pair(&stage, pair, &sent).await;
    }
    for user in PURGED {
        let gone = stage.servers.client(0).resolve(handle(&format!("reader{user}"))).await;
        assert_eq!(gone.unwrap_err().code(), Code::NotFound);
    }
    print_line(&format!(
        "inboxes under {merges} merges and as many undone: {} notices, {} of them after {} of \
         their recipients were purged",
        progress.sent.load(Relaxed),
        SENDERS * NOTICES,
        PURGED.len(),
    ));
    stage
}

/// The ids of the purged users.
fn purged(stage: &Stage) -> Vec<LocalityId> {
    PURGED.map(|user| stage.users[user].parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_and_purges_during_deliveries_on_a_replica_set() {
    let stage = merges_and_purges(Servers::on_a_set(1, 2).await).await;
    stage.servers.end().await;
    let primary = stage.servers.set.as_ref().unwrap().primary().await;
    let notices = primary.database(&stage.servers.database).await.collection::<Document>("notices");
    let all: Vec<_> = notices.find(doc! {}).await.unwrap().try_collect().await.unwrap();
    let purged = purged(&stage);
    let is_purged = |row: &Document| match row.get("_id") {
        Some(Bson::Binary(id)) => purged.iter().any(|user| user.as_bytes()[..] == id.bytes[..16]),
        other => panic!("{other:?}"),
    };
    assert!(!all.is_empty() && !all.iter().any(is_purged));
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_and_purges_during_deliveries_on_the_embedded_store() {
    let stage = merges_and_purges(Servers::embedded().await).await;
    stage.servers.end().await;
    let folder = stage.servers.folder.as_ref().unwrap().path().join("store");
    let (file, purged) = (database(&folder), purged(&stage));
    let rows: TableDefinition<'_, (&[u8; 16], u64), &[u8]> = TableDefinition::new("inbox");
    let notices: TableDefinition<'_, (&[u8; 16], &[u8; 16]), u64> =
        TableDefinition::new("inbox_notices");
    let times: TableDefinition<'_, (i64, &[u8; 16], u64), ()> = TableDefinition::new("inbox_times");
    let read = file.begin_read().unwrap();
    let (rows, notices) = (read.open_table(rows).unwrap(), read.open_table(notices).unwrap());
    let times = read.open_table(times).unwrap();
    let row_ids = rows.iter().unwrap().map(|row| *row.unwrap().0.value().0);
    let notice_ids = notices.iter().unwrap().map(|row| *row.unwrap().0.value().0);
    let time_ids = times.iter().unwrap().map(|row| *row.unwrap().0.value().1);
    let owners: Vec<_> = row_ids.chain(notice_ids).chain(time_ids).map(LocalityId::from).collect();
    assert!(!owners.is_empty() && owners.iter().all(|owner| !purged.contains(owner)));
}
