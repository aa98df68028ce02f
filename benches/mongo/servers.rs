//! The servers that are measured: those of the tests, started when they are first needed, with
//! caches that hold everything.

use std::sync::Arc;

use testkit::mongo::{Layout, ReplicaSet, Sharded};

use crate::Result;
use crate::place::Place;

const SHARDS: usize = 3;
/// Of a replica set's member, and of each shard, in GiB.
const CACHE: f64 = 4.0;
const SHARD_CACHE: f64 = 1.5;

#[derive(Default)]
pub struct Servers {
    replica_set: Option<(ReplicaSet, Arc<Place>)>,
    cluster: Option<(Sharded, Arc<Place>)>,
}

impl Servers {
    /// A replica set of one member.
    pub async fn replica_set(&mut self) -> Result<Arc<Place>> {
        if let Some((_, place)) = &self.replica_set {
            return Ok(place.clone());
        }
        let set = ReplicaSet::start(Layout { cache: CACHE, ..Layout::default() }).await;
        let place = Arc::new(Place::open(&set.uri("admin", "")).await?);
        self.replica_set = Some((set, place.clone()));
        Ok(place)
    }

    /// A cluster of three shards.
    pub async fn cluster(&mut self) -> Result<Arc<Place>> {
        if let Some((_, place)) = &self.cluster {
            return Ok(place.clone());
        }
        let cluster =
            Sharded::start(SHARDS, Layout { cache: SHARD_CACHE, ..Layout::default() }).await;
        let place = Arc::new(Place::open(&cluster.uri("admin")).await?);
        self.cluster = Some((cluster, place.clone()));
        Ok(place)
    }

    /// The version of the servers that were started, and whether a cluster was behind MongoDB's own
    /// router.
    pub fn status_details(&self) -> (Option<String>, Option<bool>) {
        let places =
            [self.replica_set.as_ref().map(|(_, p)| p), self.cluster.as_ref().map(|(_, p)| p)];
        let version = places.into_iter().flatten().map(|place| place.version().to_owned()).next();
        // The front end of the tests takes no retryable writes, and its address says so.
        let front = |cluster: &Sharded| cluster.uri("admin").contains("retryWrites=false");
        (version, self.cluster.as_ref().map(|(cluster, _)| !front(cluster)))
    }
}
