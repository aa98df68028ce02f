//! Chunks of all collections are split and moved between three shards while identifiers move
//! between users. No answer has a wrong user, or none for an owned identifier.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{Binary, Bson, doc, spec::BinarySubtype};
use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Caller, Direct, key};
use crate::ledger::Count;
use crate::load::{Load, Plan, Random};
use crate::servers::{Sharded, hash_of};
use crate::stores::{cluster, fresh, long, open, prepare_sharded, print_line};
use crate::users;

/// Splits and moves of a short run, with and without coalescing.
const SPLITS: usize = 3;
const MOVES: usize = 15;
/// The time limit, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Splits and moves chunks, and counts successes and refusals.
struct Mover {
    cluster: &'static Sharded,
    name: String,
    random: Random,
    splits: usize,
    moves: usize,
    refused: usize,
}

impl Mover {
    /// Works until this number of splits and moves.
    async fn work(&mut self, splits: usize, moves: usize) {
        let since = Instant::now();
        while self.splits < splits || self.moves < moves {
            let (done, refused) = ((self.splits, self.moves), self.refused);
            assert!(
                since.elapsed() < TIMEOUT,
                "{done:?} splits and moves are done, {refused} were refused"
            );
            let collection = ["users", "identities", "requests"][self.random.below(3)];
            let (space, point) = (format!("{}.{collection}", self.name), self.point(collection));
            if self.random.below(5) == 0 {
                self.split(&space, point.clone()).await;
            }
            let owner = self.cluster.owner(&space, point.clone()).await;
            let others: Vec<_> =
                self.cluster.shards.iter().filter(|shard| shard.name != owner).collect();
            let to = &others[self.random.below(others.len())].name;
            // A move may fail if a transaction blocks it for too long.
            let moved = self.cluster.move_chunk(&space, point, to).await.is_ok();
            *(if moved { &mut self.moves } else { &mut self.refused }) += 1;
        }
    }

    /// Splits a chunk, unless one begins at the point.
    async fn split(&mut self, space: &str, point: Bson) {
        // Identities are in chunks of hashes.
        let middle = if space.ends_with(".identities") { hash_of(point).into() } else { point };
        let split = doc! { "split": space, "middle": { "_id": middle } };
        self.splits += usize::from(self.cluster.admin(split).await.is_ok());
    }

    fn point(&mut self, collection: &str) -> Bson {
        let uuid = |bytes: [u8; 16]| {
            Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.into() })
        };
        match collection {
            "users" => uuid(*users::id(self.random.below(8)).as_bytes()),
            "identities" => Bson::String(key(self.random.below(24)).as_str().to_owned()),
            _ => uuid([self.random.next() as u8; 16]),
        }
    }
}

/// Splits and moves chunks under load.
async fn migrate(splits: usize, moves: usize, coalesce: bool) -> (Count, usize, usize) {
    let (cluster, _turn) = cluster().await;
    let shards: Vec<_> = cluster.shards.iter().map(|shard| &shard.members[0]).collect();
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let database = cluster.client().await.database(&name);
    let store = open(&cluster.uri(&name), Options::default(), coalesce).await;
    let caller: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Latest });
    let plan = Plan { gets: true, callers: 8, ..Plan::default() };
    let load = Load::start(plan, std::slice::from_ref(&caller)).await;
    let mut mover =
        Mover { cluster, name, random: Random::default(), splits: 0, moves: 0, refused: 0 };
    mover.work(splits, moves).await;
    sleep(Duration::from_millis(500)).await;
    let (ledger, before) = load.stop().await;
    no_transaction(&shards).await;
    let after = State::read(&database).await;
    after.is_found(&*caller).await;
    let (count, reasons) = (ledger.count(), ledger.reasons());
    let Mover { splits, moves, .. } = mover;
    let how = if coalesce { "together" } else { "alone" };
    print_line(&format!(
        "{splits} splits and {moves} moves of chunks, look-ups {how}: {count}; {reasons:?}"
    ));
    ledger.check(&before, &after);
    assert!(count.look_ups > 0 && count.mutations > 0, "{count}");
    database.drop().await.unwrap();
    (count, splits, moves)
}

#[tokio::test(flavor = "multi_thread")]
async fn moving_chunks_hide_no_user() {
    for coalesce in [true, false] {
        migrate(SPLITS, MOVES, coalesce).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_migration() {
    let (since, mut all) = (Instant::now(), (Count::default(), 0, 0));
    while since.elapsed() < long() {
        for coalesce in [true, false] {
            let (count, splits, moves) = migrate(3 * SPLITS, 3 * MOVES, coalesce).await;
            all.0 += count;
            all.1 += splits;
            all.2 += moves;
        }
    }
    let (count, splits, moves) = all;
    print_line(&format!(
        "migration: {splits} splits and {moves} moves of chunks under {count}; every answer was \
         right"
    ));
}
