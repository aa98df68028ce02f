//! Reads that follow a link from one record to another while one shard has applied a commit and
//! another has not: look-ups in the past, histories, inboxes and `store verify` show all of it or
//! none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, Mode};
use mongodb::bson::{Bson, Document};
use polynym_directory::{
    Backend, Consistency, Directory, Limits, PageLimit, Tenant, Timestamp, UserChange, View,
};
use polynym_identifier::RawIdentifier;
use polynym_mongodb::Options;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::audit::{State, verified};
use crate::caller::{Call, Caller, Direct, Reply, key, number, text};
use crate::servers::Sharded;
use crate::stores::{
    TIMEOUT, cluster, fresh, hold_next_commit, open, points, prepare_sharded, print_line,
    set_lifetime, shards_of_names,
};
use crate::users;

/// The delay of a commit on the last shard.
const HELD: Duration = Duration::from_secs(1);
/// A longer delay than that for which `store verify` repeats a read.
const LONG_HELD: Duration = Duration::from_secs(3);
/// Factors of a delay: a busy machine may not look in time.
const ATTEMPTS: [u32; 3] = [1, 2, 3];
/// Users of the first shard and of the second.
const SECONDARY: usize = 0;
const PRIMARY: usize = 3;

/// A store with all requests on the first shard, which coordinates every commit.
struct Scene {
    cluster: &'static Sharded,
    name: String,
    caller: Arc<Direct>,
}

impl Scene {
    async fn new(cluster: &'static Sharded) -> Self {
        let name = fresh();
        prepare_sharded(cluster, &name).await;
        for start in [vec![Bson::MinKey], points("requests").to_vec()].concat() {
            cluster.move_chunk(&format!("{name}.requests"), start, "shard0").await.unwrap();
        }
        // Reads in transactions wait for the commit, too.
        set_lifetime(cluster.shards.iter().map(|shard| &shard.members[0]), TIMEOUT).await;
        let store = open(&cluster.uri(&name), Options::default(), false).await;
        let caller = Arc::new(Direct { store, consistency: Consistency::Latest });
        Self { cluster, name, caller }
    }

    fn store(&self) -> &Backend {
        &self.caller.store
    }

    fn directory(&self) -> Directory {
        let ids = Generator::builder(Mode::Variable).random_origin().build();
        Directory::new(self.store().clone(), ids, Limits::default())
    }

    /// Moves the chunk that owns a key to the last shard.
    async fn move_to_last(&self, collection: &str, key: Bson) {
        let space = format!("{}.{collection}", self.name);
        self.cluster.move_chunk(&space, key, "shard2").await.unwrap();
    }

    /// Makes the last shard apply the next commit late.
    async fn hold_last(&self, time: Duration) {
        hold_next_commit(&self.cluster.shards[2].members[0], time).await;
    }

    async fn done(&self, call: Call) {
        let reply = self.caller.call(&call, None).await;
        assert!(matches!(reply, Reply::Done(_)), "{call:?}: {reply:?}");
    }

    /// Starts a merge whose commit the last shard applies late, and waits until a look-up shows
    /// that the primary has the secondary's name. None if half of the delay is over then.
    async fn merge(&self, secondarys_name: usize, held: Duration) -> Option<JoinHandle<Reply>> {
        self.hold_last(held).await;
        let caller = self.caller.clone();
        let merge = tokio::spawn(async move {
            caller.call(&Call::Merge(PRIMARY, SECONDARY), Some("merge")).await
        });
        let since = Instant::now();
        loop {
            match self.caller.call(&Call::Resolve(secondarys_name), None).await {
                Reply::Found(PRIMARY, _) => break,
                Reply::Found(SECONDARY, _) if since.elapsed() < TIMEOUT => {}
                other => panic!("{other:?}"),
            }
        }
        if since.elapsed() > held / 2 {
            merge.await.unwrap();
            return None;
        }
        assert!(!merge.is_finished(), "the commit was not held up");
        Some(merge)
    }

    async fn end(self) {
        let database = self.cluster.client().await.database(&self.name);
        State::read(&database).await;
        database.drop().await.unwrap();
    }
}

/// The claims and the users have been committed, the former ownership has not.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_half_committed_does_not_change_the_past() {
    let (cluster, _turn) = cluster().await;
    for factor in ATTEMPTS {
        if is_past_unchanged(cluster, factor * HELD).await {
            return;
        }
    }
    panic!("no look-up ended in time");
}

/// Looks into the past during a merge. False if the merge was not held up for long enough.
async fn is_past_unchanged(cluster: &'static Sharded, held: Duration) -> bool {
    let scene = Scene::new(cluster).await;
    let shards = shards_of_names(cluster, &scene.name, 16).await;
    let name = shards.iter().position(|shard| *shard != 2).unwrap();
    scene.done(Call::Create(SECONDARY, vec![name])).await;
    scene.done(Call::Create(PRIMARY, vec![])).await;
    scene.move_to_last("ended", key(name).as_str().into()).await;
    sleep(Duration::from_millis(20)).await;
    let before = Timestamp::now();
    sleep(Duration::from_millis(20)).await;

    let since = Instant::now();
    let Some(merge) = scene.merge(name, held).await else { return false };
    let context = users::context(Tenant::DEFAULT, "ResolveIdentity");
    let text = text(name);
    let raw = Some(RawIdentifier::Handle(&text));
    let (found, reads) =
        scene.directory().resolve_as_of(&context, raw, before, View::Full).await.unwrap();
    assert_eq!(number(found.user.id().unwrap()), SECONDARY, "another user owned the name then");
    assert_eq!(reads, 3);
    assert!(matches!(merge.await.unwrap(), Reply::Done(_)));
    assert!(since.elapsed() >= held, "the commit was not held up");
    scene.end().await;
    true
}

/// The user has been committed, the events that it moved to another document have not.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_has_no_gap_while_a_commit_is_held_up() {
    let (cluster, _turn) = cluster().await;
    let scene = Scene::new(cluster).await;
    let (user, other) = (users::id(PRIMARY), PRIMARY + 1);
    let turns = async |user: usize| {
        for n in 0..10 {
            let change = if n % 2 == 0 { UserChange::Disable } else { UserChange::Enable };
            let mutation = users::mutation(users::id(user), change);
            scene.store().mutations.mutate(mutation).await.unwrap();
        }
    };
    scene.done(Call::Create(PRIMARY, vec![])).await;
    scene.done(Call::Create(other, vec![])).await;
    turns(other).await;
    let database = cluster.client().await.database(&scene.name);
    let bucket = database.collection::<Document>("journal").find_one(Document::new()).await;
    let bucket = bucket.unwrap().expect("ten events are more than a user keeps");
    scene.move_to_last("journal", bucket.get("_id").unwrap().clone()).await;

    scene.hold_last(HELD).await;
    let since = Instant::now();
    let read = async || {
        let mut most = 0;
        while most < 11 {
            let histories = &scene.store().histories;
            let part = histories.history(&Tenant::DEFAULT, user, None, PageLimit::unlimited());
            let numbers: Vec<_> =
                part.await.unwrap().unwrap().events.iter().map(|event| event.sequence).collect();
            most = numbers.len() as u64;
            assert_eq!(numbers, (1..=most).rev().collect::<Vec<_>>(), "an event is missing");
            assert!(since.elapsed() < TIMEOUT);
        }
    };
    tokio::join!(turns(PRIMARY), read());
    assert!(since.elapsed() >= HELD, "the commit was not held up");
    scene.end().await;
}

/// The primary lists the secondary; the shard of the secondary has not committed yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_half_committed_is_no_fault_and_has_all_inboxes() {
    let (cluster, _turn) = cluster().await;
    for factor in ATTEMPTS {
        if is_without_faults(cluster, factor * LONG_HELD).await {
            return;
        }
    }
    panic!("no look-up ended in time");
}

/// Verifies the store during a merge. False if the merge was not held up for long enough.
async fn is_without_faults(cluster: &'static Sharded, held: Duration) -> bool {
    let scene = Scene::new(cluster).await;
    let shards = shards_of_names(cluster, &scene.name, 16).await;
    let name = shards.iter().position(|shard| *shard != 2).unwrap();
    scene.done(Call::Create(SECONDARY, vec![name])).await;
    scene.done(Call::Create(PRIMARY, vec![])).await;
    scene.move_to_last("users", Bson::MinKey).await;

    let since = Instant::now();
    let Some(merge) = scene.merge(name, held).await else { return false };
    let inboxes = scene.store().inboxes.inboxes(&Tenant::DEFAULT, users::id(PRIMARY));
    let database = cluster.client().await.database(&scene.name);
    let (inboxes, _) = tokio::join!(inboxes, verified(&database));
    assert_eq!(
        inboxes.unwrap().unwrap(),
        [users::id(PRIMARY), users::id(SECONDARY)],
        "the primary does not see the inbox of the secondary"
    );
    assert!(matches!(merge.await.unwrap(), Reply::Done(_)));
    assert!(since.elapsed() >= held, "the commit was not held up");
    print_line(&format!("a merge held up between its shards for {held:?} is no fault"));
    scene.end().await;
    true
}
