//! Commits whose outcome another router finds out: the first shard that has written answers as soon
//! as it has applied its own part. A mutation is acknowledged once look-ups through any router show
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{Bson, doc};
use polynym_directory::Consistency;
use polynym_mongodb::Options;

use crate::audit::State;
use crate::caller::{Call, Caller, Direct, Reply};
use crate::servers::{Line, Process, Proxy, Sharded};
use crate::stores::{
    TIMEOUT, cluster, fresh, hold_next_commit, open, points, prepare_sharded, shards_of_names,
};

/// The delay of a commit on the last shard.
const HELD: Duration = Duration::from_secs(2);
/// A user on the second shard.
const USER: usize = 3;

/// A store with all requests on the first shard, which coordinates, and a user on the second, which
/// is the first to write.
struct Scene {
    cluster: &'static Sharded,
    name: String,
    /// By the first router.
    direct: Arc<Direct>,
    /// A name whose claim is on the last shard.
    claimed: usize,
}

impl Scene {
    async fn new(cluster: &'static Sharded) -> Self {
        let name = fresh();
        prepare_sharded(cluster, &name).await;
        for start in [vec![Bson::MinKey], points("requests").to_vec()].concat() {
            cluster.move_chunk(&format!("{name}.requests"), start, "shard0").await.unwrap();
        }
        let shards = shards_of_names(cluster, &name, 32).await;
        let claimed = shards.iter().position(|shard| *shard == 2).unwrap();
        let direct = caller(&cluster.uri(&name)).await;
        let created = direct.call(&Call::Create(USER, vec![]), None).await;
        assert!(matches!(created, Reply::Done(_)), "{created:?}");
        Self { cluster, name, direct, claimed }
    }

    fn link(&self) -> Call {
        Call::Link(USER, self.claimed)
    }

    fn last(&self) -> &Process {
        &self.cluster.shards[2].members[0]
    }

    /// Waits until the commit is held up on the last shard, `count` times since the server started.
    async fn until_held(&self, count: i64) {
        let wait = doc! {
            "waitForFailPoint": "failCommand", "timesEntered": count,
            "maxTimeMS": TIMEOUT.as_millis() as i64,
        };
        self.last().admin(wait).await.unwrap();
    }

    /// Checks an acknowledged link: a look-up right after the answer shows it.
    async fn check(self, answer: Reply, since: Instant) {
        assert!(matches!(answer, Reply::Done(_)), "{answer:?}");
        let found = self.direct.call(&Call::Resolve(self.claimed), None).await;
        assert!(matches!(found, Reply::Found(USER, _)), "an acknowledged link is lost: {found:?}");
        assert!(since.elapsed() >= HELD, "the commit was not held up");
        let database = self.cluster.client().await.database(&self.name);
        State::read(&database).await;
        database.drop().await.unwrap();
    }
}

async fn caller(uri: &str) -> Arc<Direct> {
    let store = open(uri, Options::default(), false).await;
    Arc::new(Direct { store, consistency: Consistency::Latest })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_another_router_recovers_is_visible_once_it_is_acknowledged() {
    let (cluster, _turn) = cluster().await;
    let scene = Scene::new(cluster).await;
    let first = Proxy::start(cluster.address()).await;
    let second = Proxy::start(cluster.another_router().await).await;
    second.set_line(Line::Down);
    let uri = cluster.uri_at(first.address(), &scene.name);
    let both = format!("{},{}", first.address(), second.address());
    let cut_off = caller(&uri.replace(&first.address().to_string(), &both)).await;

    let count = hold_next_commit(scene.last(), HELD).await;
    let since = Instant::now();
    let link = tokio::spawn({
        let call = scene.link();
        async move { cut_off.call(&call, Some("link")).await }
    });
    scene.until_held(count).await;
    second.set_line(Line::Up);
    first.set_line(Line::Down);
    scene.check(link.await.unwrap(), since).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_visible_once_it_is_acknowledged() {
    let (cluster, _turn) = cluster().await;
    let scene = Scene::new(cluster).await;
    let count = hold_next_commit(scene.last(), HELD).await;
    let since = Instant::now();
    let link = tokio::spawn({
        let (caller, call) = (scene.direct.clone(), scene.link());
        async move { caller.call(&call, Some("link")).await }
    });
    scene.until_held(count).await;
    let other = caller(&cluster.uri_at(cluster.another_router().await, &scene.name)).await;
    let again = other.call(&scene.link(), Some("link")).await;
    scene.check(again, since).await;
    assert!(matches!(link.await.unwrap(), Reply::Done(_)));
}
