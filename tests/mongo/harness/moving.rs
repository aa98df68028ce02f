//! Transactions and snapshots on a cluster whose chunks move, sharded by keys and by hashed keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;
use tokio::time::{Instant, sleep, timeout};

use super::cluster;
use super::cluster::{KEYS, begin, spread, thing};
use super::hashed;

/// Chunk moves during the test.
const MOVES: usize = 12;
/// Concurrent tasks with transactions. The first one reads.
const TASKS: usize = 8;
/// The minimum number of transactions per task.
const AT_LEAST: u32 = 3;
/// The time limit for progress.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Documents whose numbers sum to 0, with keys of all three shards in turn.
struct Things {
    things: Collection<Document>,
    keys: Vec<String>,
    done: AtomicBool,
    /// Per task: committed and restarted transactions.
    counts: [(AtomicU32, AtomicU32); TASKS],
}

impl Things {
    async fn new(things: Collection<Document>, keys: Vec<String>) -> Arc<Self> {
        things.insert_many(keys.iter().map(|key| thing(key, 0))).await.unwrap();
        Arc::new(Self { things, keys, done: AtomicBool::default(), counts: Default::default() })
    }

    /// Moves 1 from one key to another in a transaction.
    async fn transfer(&self, from: usize, to: usize) -> mongodb::error::Result<()> {
        let mut session = begin(&self.things).await;
        for (n, by) in [(from, -1), (to, 1)] {
            let key = &self.keys[n % self.keys.len()];
            let update = self.things.update_one(doc! { "_id": key }, doc! { "$inc": { "n": by } });
            if let Err(error) = update.session(&mut session).await {
                session.abort_transaction().await?;
                return Err(error);
            }
        }
        session.commit_transaction().await
    }

    /// Returns the sum over all keys in one snapshot.
    async fn sum(&self) -> mongodb::error::Result<i32> {
        let mut session = begin(&self.things).await;
        let all = doc! { "_id": { "$in": &self.keys } };
        let mut cursor = self.things.find(all).session(&mut session).await?;
        let found: Vec<Document> = cursor.stream(&mut session).try_collect().await?;
        assert_eq!(found.len(), self.keys.len());
        session.commit_transaction().await?;
        Ok(found.iter().map(|thing| thing.get_i32("n").unwrap()).sum())
    }

    /// Runs transactions until the test is done.
    async fn run_task(self: Arc<Self>, task: usize) {
        let (made, again) = &self.counts[task];
        while !self.done.load(Relaxed) {
            let n = made.load(Relaxed) as usize * 7 + task;
            let outcome = match task {
                0 => self
                    .sum()
                    .await
                    .map(|sum| assert_eq!(sum, 0, "a snapshot with a partial transaction")),
                _ => self.transfer(n, n + 1 + n % 8).await,
            };
            match outcome {
                Ok(()) => made.fetch_add(1, Relaxed),
                Err(error) if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => {
                    again.fetch_add(1, Relaxed)
                }
                Err(error) => panic!("{error:?}"),
            };
        }
    }

    fn all_have_worked(&self) -> bool {
        self.counts.iter().all(|(made, _)| made.load(Relaxed) >= AT_LEAST)
    }
}

/// Runs transactions while the chunks that own `points` move.
async fn run_while_chunks_move(things: Arc<Things>, space: &str, points: [String; 3]) {
    let cluster = cluster().await;
    let mut tasks = tokio::task::JoinSet::new();
    (0..TASKS).for_each(|task| drop(tasks.spawn(things.clone().run_task(task))));
    let (since, mut moves, mut refused) = (Instant::now(), 0, 0);
    while moves < MOVES {
        let to = &cluster.shards[(moves / 3 + moves % 3 + 1) % 3].name;
        // A long transaction may block a move.
        match cluster.move_chunk(space, points[moves % 3].as_str().into(), to).await {
            Ok(()) => moves += 1,
            Err(error) => {
                refused += 1;
                assert!(
                    since.elapsed() < TIMEOUT,
                    "{moves} moves, {refused} refused, last error: {error}"
                );
            }
        }
    }

    while !things.all_have_worked() {
        assert!(
            since.elapsed() < 2 * TIMEOUT,
            "a task commits no transaction: {:?}",
            things.counts
        );
        sleep(Duration::from_millis(20)).await;
        assert!(tasks.try_join_next().is_none(), "a task has ended");
    }

    things.done.store(true, Relaxed);
    timeout(TIMEOUT, tasks.join_all()).await.expect("tasks end");
    println!("{moves} moves, {refused} refused; transactions and restarts: {:?}", things.counts);
    assert_eq!(things.sum().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_and_snapshots_stay_consistent_while_chunks_move() {
    let collection = spread(cluster().await, "moving").await;
    let things = Things::new(collection, KEYS.map(str::to_owned).into()).await;
    run_while_chunks_move(things, "moving.things", ["b", "j", "t"].map(str::to_owned)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_and_snapshots_stay_consistent_while_hashed_chunks_move() {
    let cluster = cluster().await;
    let things = hashed::shard(cluster, "moving_hashes").await;
    let mut of_shards = Vec::new();
    for shard in 0..3 {
        of_shards.push(hashed::keys_of(cluster, "moving_hashes", shard, 3).await);
    }
    let keys: Vec<String> = (0..9).map(|n| of_shards[n % 3][n / 3].clone()).collect();
    let points = [0, 1, 2].map(|n| keys[n].clone());
    run_while_chunks_move(Things::new(things, keys).await, "moving_hashes.things", points).await;
}
