//! Zones, for the time of `store init`. Where the ranges of an empty collection are in zones,
//! `shardCollection` creates a chunk of each on a shard of its zone; to move a chunk there takes a
//! second. Where zones are refused, the chunks are split and moved one by one.

use mongodb::Database;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;

use crate::client::documents::collect;
use crate::command::run::run;
use crate::schema::fields::ID;
use crate::setup::cluster::STEP_TIMEOUT;
use crate::setup::presplit::Range;

/// A zone for each shard. Their names contain the database: other stores may be created meanwhile.
pub struct Zones<'z> {
    database: &'z Database,
    shards: &'z [String],
}

impl<'z> Zones<'z> {
    pub fn new(database: &'z Database, shards: &'z [String]) -> Self {
        Self { database, shards }
    }

    fn name(&self, shard: &str) -> String {
        format!("polynym init {} {shard}", self.database.name())
    }

    fn names(&self) -> impl Iterator<Item = (&'z String, String)> {
        self.shards.iter().map(|shard| (shard, self.name(shard)))
    }

    async fn run(&self, command: Document) -> Result<(), DriverError> {
        let admin = self.database.client().database("admin");
        run(&admin, command, STEP_TIMEOUT).await.map(drop)
    }

    /// Puts each shard into its zone.
    pub async fn add(&self) -> Result<(), DriverError> {
        for (shard, zone) in self.names() {
            self.run(doc! { "addShardToZone": shard, "zone": zone }).await?;
        }
        Ok(())
    }

    /// Puts the ranges of a collection, which is not sharded yet, into the zones of their shards.
    pub async fn assign(&self, collection: &str, ranges: &[Range]) -> Result<(), DriverError> {
        let space = format!("{}.{collection}", self.database.name());
        let first = Range { start: Bson::MinKey, shard: 0 };
        let ends = ranges.iter().map(|range| range.start.clone()).chain([Bson::MaxKey]);
        for (range, end) in [&first].into_iter().chain(ranges).zip(ends) {
            let (min, max) = (doc! { ID: range.start.clone() }, doc! { ID: end });
            let zone = self.name(&self.shards[range.shard]);
            self.run(doc! { "updateZoneKeyRange": &space, "min": min, "max": max, "zone": zone })
                .await?;
        }
        Ok(())
    }

    /// Removes the zones, also those that an interrupted run has left.
    pub async fn remove(&self) -> Result<(), DriverError> {
        let names: Vec<_> = self.names().map(|(_, zone)| zone).collect();
        let config = self.database.client().database("config");
        let tags = config.collection::<RawDocumentBuf>("tags");
        let found = tags.find(doc! { "tag": { "$in": names } }).max_time(STEP_TIMEOUT).await?;
        for tag in collect(found).await? {
            let field = |name| tag.get(name).cloned();
            let (space, min, max) = (field("ns"), field("min"), field("max"));
            let zone = Bson::Null;
            self.run(doc! { "updateZoneKeyRange": space, "min": min, "max": max, "zone": zone })
                .await?;
        }
        for (shard, zone) in self.names() {
            self.run(doc! { "removeShardFromZone": shard, "zone": zone }).await?;
        }
        Ok(())
    }
}
