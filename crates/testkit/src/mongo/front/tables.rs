//! A cache of the config server's tables: the chunks of each collection, and the databases. When a
//! shard rejects a table as outdated, it is read again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use mongodb::bson::{Bson, Document, doc};
use tokio::sync::OnceCell;

use super::chunks::Chunks;
use super::fault::Fault;
use super::links::{CONFIG, Links, majority};

/// A table that is read once for all concurrent readers.
type Table = Arc<OnceCell<Arc<Chunks>>>;

#[derive(Default)]
pub struct Tables {
    collections: Mutex<HashMap<String, Table>>,
    databases: Mutex<HashSet<String>>,
}

impl Tables {
    fn entry(&self, space: &str) -> Table {
        let mut collections = self.collections.lock().unwrap();
        collections.entry(space.to_owned()).or_default().clone()
    }

    /// Removes a collection from the cache.
    pub fn forget(&self, space: &str) {
        self.collections.lock().unwrap().remove(space);
    }

    /// Removes a collection from the cache, unless it was read again in the meantime.
    pub fn forget_this(&self, space: &str, stale: &Arc<Chunks>) {
        let mut collections = self.collections.lock().unwrap();
        let is_this = |table: &Table| table.get().is_some_and(|chunks| Arc::ptr_eq(chunks, stale));
        if collections.get(space).is_some_and(is_this) {
            collections.remove(space);
        }
    }

    pub fn forget_database(&self, database: &str) {
        self.databases.lock().unwrap().remove(database);
        let is_other =
            |space: &str| space.split_once('.').is_none_or(|(other, _)| other != database);
        self.collections.lock().unwrap().retain(|space, _| is_other(space));
    }

    /// Returns the chunks of a collection.
    pub async fn chunks(&self, space: &str, links: &mut Links) -> Result<Arc<Chunks>, Fault> {
        let table = self.entry(space);
        table
            .get_or_try_init(async || Ok(Arc::new(self.read_chunks(space, links).await?)))
            .await
            .cloned()
    }

    /// Returns the chunks of a collection, if it is sharded.
    pub async fn sharded(
        &self,
        space: &str,
        links: &mut Links,
    ) -> Result<Option<Arc<Chunks>>, Fault> {
        let known = self.entry(space).get().cloned();
        if known.is_none() && collection(space, links).await?.is_none() {
            return Ok(None);
        }
        let chunks = self.chunks(space, links).await?;
        Ok(Some(chunks).filter(|chunks| chunks.database.is_none()))
    }

    async fn read_chunks(&self, space: &str, links: &mut Links) -> Result<Chunks, Fault> {
        let Some(collection) = collection(space, links).await? else {
            let database = space.split_once('.').map_or(space, |(database, _)| database);
            let home = self.home(database, links).await?;
            return Ok(Chunks::whole(home.primary, home.version));
        };
        let filter = doc! { "uuid": collection.get("uuid").cloned() };
        let rows = config(links, "chunks", filter).await?;
        Chunks::sharded(&collection, &rows, links)
    }

    /// Returns a database, and creates it if it does not exist.
    pub async fn home(&self, database: &str, links: &mut Links) -> Result<Home, Fault> {
        let named = || doc! { "_id": database };
        let mut rows = config(links, "databases", named()).await?;
        if rows.is_empty() {
            self.create_database(database, None, links).await?;
            rows = config(links, "databases", named()).await?;
        }
        let row =
            rows.pop().ok_or_else(|| Fault::own(26, "NamespaceNotFound", "no such database"))?;
        let primary = links.find(row.get_str("primary").unwrap_or_default())?;
        Ok(Home { primary, version: row.get_document("version").cloned().unwrap_or_default() })
    }

    pub async fn create_database(
        &self,
        database: &str,
        primary: Option<&Bson>,
        links: &mut Links,
    ) -> Result<(), Fault> {
        let mut create = doc! { "_configsvrCreateDatabase": database, "writeConcern": majority() };
        create.extend(primary.map(|primary| ("primaryShardId".to_owned(), primary.clone())));
        links.ask(CONFIG, "admin", create).await?;
        self.databases.lock().unwrap().insert(database.to_owned());
        Ok(())
    }

    /// Creates a database that does not exist, as a router does before a write.
    pub async fn ensure_database(&self, database: &str, links: &mut Links) -> Result<(), Fault> {
        let is_known = self.databases.lock().unwrap().contains(database);
        if is_known { Ok(()) } else { self.create_database(database, None, links).await }
    }
}

/// A database: the index of its primary shard, and its version.
pub struct Home {
    pub primary: usize,
    pub version: Document,
}

/// Returns the row of a sharded collection.
pub async fn collection(space: &str, links: &mut Links) -> Result<Option<Document>, Fault> {
    Ok(config(links, "collections", doc! { "_id": space }).await?.pop())
}

/// Returns the rows of a table of the config server that match a filter, chunks in the order of
/// their keys.
pub async fn config(
    links: &mut Links,
    table: &str,
    filter: Document,
) -> Result<Vec<Document>, Fault> {
    let sort = if table == "chunks" {
        doc! { "min": 1 }
    } else {
        doc! { "_id": 1 }
    };

    let find = doc! {
        "find": table,
        "filter": filter,
        "sort": sort,
        "batchSize": i32::MAX,
        "readConcern": { "level": "majority" },
    };

    let reply = links.ask(CONFIG, "config", find).await?;
    let rows = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    Ok(rows.into_iter().flatten().filter_map(Bson::as_document).cloned().collect())
}
