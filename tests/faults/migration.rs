//! Chunks of all collections are split and moved between three shards while identifiers move between users. Every answer
//! is held against all others: never the wrong user, and never nobody for what somebody owned all the while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{Binary, Bson, doc, spec::BinarySubtype};
use polynym::directory::Consistency;
use polynym::store::mongo::Options;
use tokio::time::sleep;

use super::audit::{State, no_transaction};
use super::caller::{Caller, Direct, key};
use super::ledger::Count;
use super::load::{Load, Plan, Random};
use super::place::{cluster, fresh, long, open, prepare_sharded, tell};
use crate::servers::Sharded;
use crate::users;

/// Splits and moves until it is stopped; counts both.
struct Mover {
    cluster: &'static Sharded,
    name: String,
    random: Random,
    splits: usize,
    moves: usize,
}

impl Mover {
    async fn work_for(&mut self, time: Duration) {
        let since = Instant::now();
        while since.elapsed() < time {
            let collection = ["users", "identities", "requests"][self.random.below(3)];
            let (space, point) = (format!("{}.{collection}", self.name), self.point(collection));
            if self.random.below(5) == 0 {
                let split = doc! { "split": &space, "middle": { "_id": &point } };
                self.splits += usize::from(self.cluster.admin(split).await.is_ok());
            }
            let to = &self.cluster.shards[self.random.below(self.cluster.shards.len())].name;
            // A move may fail where a transaction is in its way for too long.
            self.moves += usize::from(self.cluster.move_chunk(&space, point, to).await.is_ok());
        }
    }

    fn point(&mut self, collection: &str) -> Bson {
        let uuid = |bytes: [u8; 16]| Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.into() });
        match collection {
            "users" => uuid(*users::id(self.random.below(8)).as_bytes()),
            "identities" => Bson::String(key(self.random.below(24)).as_str().to_owned()),
            _ => uuid([self.random.next() as u8; 16]),
        }
    }
}

async fn migrate(time: Duration, coalesce: bool) -> (Count, usize, usize) {
    let (cluster, _turn) = cluster().await;
    let shards: Vec<_> = cluster.shards.iter().map(|shard| &shard.members[0]).collect();
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let database = cluster.client().await.database(&name);
    let store = open(&cluster.uri(&name), Options::default(), coalesce).await;
    let caller: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Latest });
    let plan = Plan { gets: true, callers: 8, ..Plan::default() };
    let load = Load::start(plan, std::slice::from_ref(&caller)).await;
    let mut mover = Mover { cluster, name, random: Random::default(), splits: 0, moves: 0 };
    mover.work_for(time).await;
    sleep(Duration::from_millis(500)).await;
    let (ledger, before) = load.stop().await;
    no_transaction(&shards).await;
    let after = State::read(&database).await;
    after.is_found(&*caller).await;
    let (count, reasons) = (ledger.count(), ledger.reasons());
    let Mover { splits, moves, .. } = mover;
    let how = if coalesce { "together" } else { "alone" };
    tell(&format!("{splits} splits and {moves} moves of chunks, look-ups {how}: {count}; {reasons:?}"));
    ledger.check(&before, &after);
    assert!(moves > 2, "nothing moved");
    database.drop().await.unwrap();
    (count, splits, moves)
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_that_move_hide_nobody() {
    for coalesce in [true, false] {
        migrate(Duration::from_secs(4), coalesce).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_migration() {
    let (since, mut all) = (Instant::now(), (Count::default(), 0, 0));
    while since.elapsed() < long() {
        for coalesce in [true, false] {
            let (count, splits, moves) = migrate(Duration::from_secs(20), coalesce).await;
            all.0 += count;
            all.1 += splits;
            all.2 += moves;
        }
    }
    let (count, splits, moves) = all;
    tell(&format!("migration: {splits} splits and {moves} moves of chunks under {count}; every answer was right"));
}
