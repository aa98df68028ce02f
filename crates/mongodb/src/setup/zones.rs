//! Zones, for the time of `store init`. Where the ranges of an empty collection are in zones,
//! `shardCollection` creates a chunk of each on a shard of its zone; to move a chunk there takes a
//! second. Where zones are refused, the chunks are split and moved one by one.

use mongodb::Database;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;

use crate::client::documents::collect;
use crate::command::run::run;
use crate::schema::fields::ID;
use crate::setup::cluster::{STEP_TIMEOUT, retry_step};
use crate::setup::presplit::{FIRST, Range};

/// A zone for each shard. Their names contain the database: other stores may be created meanwhile.
pub struct Zones<'z> {
    database: &'z Database,
}

impl<'z> Zones<'z> {
    pub const fn new(database: &'z Database) -> Self {
        Self { database }
    }

    fn prefix(&self) -> String {
        format!("polynym init {} ", self.database.name())
    }

    fn name(&self, shard: &str) -> String {
        self.prefix() + shard
    }

    async fn run(&self, command: Document) -> Result<Document, DriverError> {
        run(&self.database.client().database("admin"), command, STEP_TIMEOUT).await
    }

    /// Puts each shard into its zone. Fails before it has changed anything if this user could not
    /// find the zones to remove them.
    pub async fn add(&self, shards: &[String]) -> Result<(), DriverError> {
        self.ranges().await?;
        for shard in shards {
            self.run(doc! { "addShardToZone": shard, "zone": self.name(shard) }).await?;
        }
        Ok(())
    }

    /// Puts the ranges of a collection, which is not sharded yet, into the zones of their shards.
    pub async fn assign(
        &self,
        collection: &str,
        ranges: &[Range],
        shards: &[String],
    ) -> Result<(), DriverError> {
        let space = format!("{}.{collection}", self.database.name());
        let ends = ranges.iter().map(|range| range.start.clone()).chain([Bson::MaxKey]);
        for (range, end) in [&FIRST].into_iter().chain(ranges).zip(ends) {
            let (min, max) = (doc! { ID: range.start.clone() }, doc! { ID: end });
            let zone = self.name(&shards[range.shard]);
            self.run(doc! { "updateZoneKeyRange": &space, "min": min, "max": max, "zone": zone })
                .await?;
        }
        Ok(())
    }

    /// Removes all zones of the database, also those that an interrupted run has left.
    pub async fn remove(&self) -> Result<(), DriverError> {
        retry_step(async || self.remove_found().await).await
    }

    async fn remove_found(&self) -> Result<(), DriverError> {
        for range in self.ranges().await? {
            let field = |name| range.get(name).cloned();
            let (space, min, max) = (field("ns"), field("min"), field("max"));
            let zone = Bson::Null;
            self.run(doc! { "updateZoneKeyRange": space, "min": min, "max": max, "zone": zone })
                .await?;
        }
        let reply = self.run(doc! { "listShards": 1 }).await?;
        let shards = reply.get_array("shards").into_iter().flatten().filter_map(Bson::as_document);
        for shard in shards {
            let Ok(name) = shard.get_str(ID) else { continue };
            let zones = shard.get_array("tags").into_iter().flatten().filter_map(Bson::as_str);
            for zone in zones.filter(|zone| zone.starts_with(&self.prefix())) {
                self.run(doc! { "removeShardFromZone": name, "zone": zone }).await?;
            }
        }
        Ok(())
    }

    /// The ranges that are in zones of this database.
    async fn ranges(&self) -> Result<Vec<Document>, DriverError> {
        let from = self.prefix();
        // The character after the space at its end.
        let until = format!("{}!", from.trim_end());
        let config = self.database.client().database("config");
        let tags = config.collection::<RawDocumentBuf>("tags");
        let own = doc! { "tag": { "$gte": from, "$lt": until } };
        collect(tags.find(own).max_time(STEP_TIMEOUT).await?).await
    }
}
