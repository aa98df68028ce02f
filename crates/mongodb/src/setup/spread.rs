//! The part of `store init` that shards collections and spreads them over all shards, so that all
//! work from the start.

use mongodb::error::Error as DriverError;

use crate::client::error::OpenError;
use crate::schema::fields::{BULK, ENDED, IDENTITIES, JOURNAL, NAMES, NOTICES, SERVERS, TENANTS};
use crate::setup::cluster::Cluster;
use crate::setup::init::Init;
use crate::setup::inspect::CollectionState;
use crate::setup::presplit::{self, FIRST, Range, Step};
use crate::setup::validators::{by_order, shard_key};
use crate::setup::zones::Zones;

impl Init<'_> {
    /// Shards the collections, in zones if there are any, and spreads them over all shards.
    pub async fn spread(
        &self,
        cluster: &Cluster,
        found: &[CollectionState],
        shards: &[String],
        zones: Option<&Zones<'_>>,
    ) -> Result<(), OpenError> {
        for found in found {
            let spread = self.spread_one(cluster, found, shards, zones).await;
            spread.map_err(|error| error.in_collection(found.name))?;
        }
        Ok(())
    }

    async fn spread_one(
        &self,
        cluster: &Cluster,
        found: &CollectionState,
        shards: &[String],
        zones: Option<&Zones<'_>>,
    ) -> Result<(), OpenError> {
        let name = found.name;
        let ranges = match name {
            // These have hashes, or few documents.
            IDENTITIES | ENDED | TENANTS | NAMES | SERVERS | BULK => Vec::new(),
            JOURNAL => presplit::of_buckets(shards.len()),
            NOTICES => presplit::of_rows(shards.len()),
            _ => presplit::of_ids(shards.len()),
        };
        let is_new = found.key.is_none() && !found.is_used;
        if let Some(zones) = zones.filter(|_| is_new && !ranges.is_empty()) {
            // A failure costs time alone: ranges without a zone are split and moved below.
            let _ = zones.assign(name, &ranges, shards).await;
        }
        self.shard_one(cluster, found).await?;
        match name {
            IDENTITIES | ENDED => self.spread_hashes(cluster, found, shards).await?,
            TENANTS | NAMES | SERVERS | BULK => {}
            _ => self.spread_ranges(cluster, name, &ranges, shards).await?,
        }
        Ok(())
    }

    /// Shards a collection. One from a replica set has documents and lacks the index of a
    /// hashed key.
    pub async fn shard_one(
        &self,
        cluster: &Cluster,
        found: &CollectionState,
    ) -> Result<(), DriverError> {
        let (name, key) = (found.name, shard_key(found.name));
        if found.is_used && found.key.is_none() && key != by_order() {
            cluster.create_index(name, &key).await?;
            (self.progress)(&format!("{name}: has an index on {key}"));
        }
        let made = cluster.shard(name).await?;
        let key = cluster.key_of(name).await?.unwrap_or(key);
        (self.progress)(&format!(
            "{name}: {} sharded on {key}",
            if made { "is now" } else { "was" }
        ));
        Ok(())
    }

    /// Gives some hashes of an empty collection to every shard, as MongoDB does when it shards one.
    /// The balancer spreads collections that are in use or sharded in ranges.
    async fn spread_hashes(
        &self,
        cluster: &Cluster,
        found: &CollectionState,
        shards: &[String],
    ) -> Result<(), DriverError> {
        let name = found.name;
        let is_hashed = cluster.key_of(name).await?.is_some_and(|key| key == shard_key(name));
        // Another run may have done the step.
        let mut idle_steps = 0;
        while is_hashed && !found.is_used && idle_steps < 2 {
            let Some(step) =
                presplit::next_step(&cluster.hashes(name, shards).await?, shards.len())
            else {
                break;
            };
            let is_done = match step {
                Step::Split(middle) => cluster.split(name, &middle.into()).await?,
                Step::Move(start, shard) => {
                    cluster.move_empty_chunk(name, &start, &shards[shard]).await?
                }
            };
            idle_steps = if is_done { 0 } else { idle_steps + 1 };
        }
        (self.progress)(&format!(
            "{name}: there are now chunks on {}",
            chunk_counts(cluster, name, shards).await?
        ));

        Ok(())
    }

    /// Splits a collection into ranges, and moves empty chunks to their shards.
    async fn spread_ranges(
        &self,
        cluster: &Cluster,
        name: &str,
        ranges: &[Range],
        shards: &[String],
    ) -> Result<(), DriverError> {
        let (mut split, mut moved) = (0, 0);
        for range in ranges {
            split += usize::from(cluster.split(name, &range.start).await?);
        }

        (self.progress)(&format!(
            "{name}: split at {split} of {} keys, the others were split before",
            ranges.len()
        ));
        for range in [&FIRST].into_iter().chain(ranges) {
            moved += usize::from(
                cluster.move_empty_chunk(name, &range.start, &shards[range.shard]).await?,
            );
        }

        let counts = chunk_counts(cluster, name, shards).await?;
        (self.progress)(&format!(
            "{name}: {moved} empty chunks moved; there are now chunks on {counts}"
        ));
        Ok(())
    }
}

/// The number of chunks of a collection on each shard, as text.
async fn chunk_counts(
    cluster: &Cluster,
    name: &str,
    shards: &[String],
) -> Result<String, DriverError> {
    let chunks = cluster.chunks(name).await?;
    let count = |shard: &String| {
        format!("{shard} {}", chunks.iter().filter(|chunk| chunk.shard == *shard).count())
    };
    Ok(shards.iter().map(count).collect::<Vec<_>>().join(", "))
}
