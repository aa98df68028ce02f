//! A sharded cluster as its router shows it: shards and chunks, and the commands that cut and move
//! chunks. Other runs and the balancer may be at the same work: every step looks first whether it
//! is done, and is tried again where it was disturbed. `presplit` computes the chunks.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::options::Hint;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::presplit::Hashes;
use super::schema::ID;
use super::validators::shard_key;

/// The time for which a disturbed step is repeated, and the pauses between attempts.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for which a move waits for other moves: a shard takes part in one at a time, and one
/// may take minutes.
const MOVE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The age in milliseconds of the latest report of a live router; routers report twice a minute.
const LATELY: i64 = 5 * 60 * 1_000;

/// ConflictingOperationInProgress.
const CONFLICT: i32 = 117;

/// Unauthorized, AuthenticationFailed, IllegalOperation, CommandNotFound: trying again changes
/// nothing.
const FINAL: [i32; 4] = [13, 18, 20, 59];

/// The cluster that has a store's database.
pub struct Cluster {
    database: Database,
    admin: Database,
    config: Database,
}

/// A range of a sharded collection, and the shard that has it.
pub struct Chunk {
    min: Document,
    max: Document,
    pub shard: String,
}

impl Cluster {
    /// The cluster behind `database`; none where that is a replica set.
    pub async fn of(database: &Database) -> Result<Option<Self>, DriverError> {
        let hello = database.run_command(doc! { "hello": 1 }).await?;
        if hello.get_str("msg").ok() != Some("isdbgrid") {
            return Ok(None);
        }
        let [admin, config] = ["admin", "config"].map(|name| database.client().database(name));
        Ok(Some(Self { database: database.clone(), admin, config }))
    }

    /// The names of the shards, in order, but for those that are being taken away.
    pub async fn shards(&self) -> Result<Vec<String>, DriverError> {
        let reply = self.admin.run_command(doc! { "listShards": 1 }).await?;
        let shards = reply.get_array("shards").into_iter().flatten().filter_map(Bson::as_document);
        let stays = shards.filter(|shard| !shard.get_bool("draining").unwrap_or_default());
        let mut names: Vec<_> =
            stays.filter_map(|shard| shard.get_str(ID).ok()).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The versions of the routers that have reported lately.
    pub async fn router_versions(&self) -> Result<Vec<String>, DriverError> {
        let lately = DateTime::from_millis(DateTime::now().timestamp_millis() - LATELY);
        let routers = self
            .config
            .collection::<Document>("mongos")
            .find(doc! { "ping": { "$gte": lately } })
            .await?;
        let version = |router: Document| Ok(router.get_str("mongoVersion").ok().map(str::to_owned));
        routers.try_filter_map(|router| async { version(router) }).try_collect().await
    }

    /// The shard key of `collection`; none if it is not sharded.
    pub async fn key_of(&self, collection: &str) -> Result<Option<Document>, DriverError> {
        Ok(self.entry(collection).await?.and_then(|entry| entry.get_document("key").ok().cloned()))
    }

    async fn entry(&self, collection: &str) -> Result<Option<Document>, DriverError> {
        let entries = self.config.collection::<Document>("collections");
        entries.find_one(doc! { ID: self.namespace(collection), "dropped": { "$ne": true } }).await
    }

    fn namespace(&self, collection: &str) -> String {
        format!("{}.{collection}", self.database.name())
    }

    /// The chunks of `collection`, in no order.
    pub async fn chunks(&self, collection: &str) -> Result<Vec<Chunk>, DriverError> {
        let Some(filter) = self.own_chunks(collection).await? else { return Ok(Vec::new()) };
        let chunks = self.config.collection::<Document>("chunks").find(filter).await?;
        chunks.try_filter_map(|chunk| async move { Ok(Chunk::read(&chunk)) }).try_collect().await
    }

    /// The chunk that begins at `start`.
    async fn chunk_at(&self, collection: &str, start: &Bson) -> Result<Option<Chunk>, DriverError> {
        let Some(mut filter) = self.own_chunks(collection).await? else { return Ok(None) };
        filter.insert(format!("min.{ID}"), start.clone());
        let chunk = self.config.collection::<Document>("chunks").find_one(filter).await?;
        Ok(chunk.as_ref().and_then(Chunk::read))
    }

    /// Chunks have their collection's UUID; before MongoDB 5.0 they had its name.
    async fn own_chunks(&self, collection: &str) -> Result<Option<Document>, DriverError> {
        let Some(entry) = self.entry(collection).await? else { return Ok(None) };
        let by_name = doc! { "ns": self.namespace(collection) };
        Ok(Some(entry.get("uuid").map_or(by_name, |uuid| doc! { "uuid": uuid.clone() })))
    }

    /// Lets the database have sharded collections.
    pub async fn enable(&self) -> Result<(), DriverError> {
        let enable = || self.admin.run_command(doc! { "enableSharding": self.database.name() });
        patiently(|| async { enable().await.map(drop) }).await
    }

    /// Makes the index that a collection with documents needs before it is sharded on `key`.
    pub async fn make_index(&self, collection: &str, key: &Document) -> Result<(), DriverError> {
        let name: Vec<_> = key
            .iter()
            .map(|(field, kind)| format!("{field}_{}", kind.as_str().unwrap_or("1")))
            .collect();
        let index = doc! { "key": key.clone(), "name": name.join("_") };
        let command = doc! { "createIndexes": collection, "indexes": [index] };
        patiently(|| async { self.database.run_command(command.clone()).await.map(drop) }).await
    }

    /// Shards `collection` and returns whether it was unsharded. Existing documents stay in one
    /// chunk; an empty collection with a hashed key gets chunks on all shards.
    pub async fn shard(&self, collection: &str) -> Result<bool, DriverError> {
        let command =
            doc! { "shardCollection": self.namespace(collection), "key": shard_key(collection) };
        let shard = async || {
            let open = self.key_of(collection).await?.is_none();
            if open {
                self.admin.run_command(command.clone()).await?;
            }
            Ok(open)
        };
        patiently(shard).await
    }

    /// Splits a chunk so that one begins at `start`. Returns whether that was still to do.
    pub async fn split(&self, collection: &str, start: &Bson) -> Result<bool, DriverError> {
        let command = doc! { "split": self.namespace(collection), "middle": { ID: start.clone() } };
        let split = async || {
            let open = self.chunk_at(collection, start).await?.is_none();
            if open {
                self.admin.run_command(command.clone()).await?;
            }
            Ok(open)
        };
        patiently(split).await
    }

    /// Moves the chunk that begins at `start` to `shard`, unless it has documents. Returns whether
    /// that was still to do.
    pub async fn place(
        &self,
        collection: &str,
        start: &Bson,
        shard: &str,
    ) -> Result<bool, DriverError> {
        let place = async || {
            let chunk =
                self.chunk_at(collection, start).await?.filter(|chunk| chunk.shard != shard);
            let Some(chunk) = chunk else { return Ok(false) };
            let open = self.is_empty(collection, &chunk).await?;
            if open {
                let space = self.namespace(collection);
                let command =
                    doc! { "moveChunk": space, "bounds": [chunk.min, chunk.max], "to": shard };
                self.admin.run_command(command).await?;
            }
            Ok(open)
        };
        let since = Instant::now();
        let passes = |error: &DriverError| {
            is_conflict(error) || (may_pass(error) && since.elapsed() < STEP_TIMEOUT)
        };

        Backoff::new(PAUSE, LONGEST_PAUSE, since + MOVE_TIMEOUT).between(place, passes).await
    }

    async fn is_empty(&self, collection: &str, chunk: &Chunk) -> Result<bool, DriverError> {
        let documents = self.database.collection::<Document>(collection);
        let key = self.key_of(collection).await?.unwrap_or_else(|| shard_key(collection));
        let (min, max) = (chunk.min.clone(), chunk.max.clone());
        let first = documents.find_one(doc! {}).min(min).max(max).hint(Hint::Keys(key));
        Ok(first.projection(doc! { ID: 1 }).await?.is_none())
    }

    /// The chunks of a collection that is sharded on hashes, with the numbers that the shards have
    /// in `shards`.
    pub async fn hashes(
        &self,
        collection: &str,
        shards: &[String],
    ) -> Result<Vec<Hashes>, DriverError> {
        let bound = |bound: Document| bound.get(ID).cloned().unwrap_or(Bson::Null);
        let hashes = |chunk: Chunk| {
            let shard = shards.iter().position(|shard| *shard == chunk.shard)?;
            Some(Hashes { start: bound(chunk.min), end: bound(chunk.max), shard })
        };
        Ok(self.chunks(collection).await?.into_iter().filter_map(hashes).collect())
    }
}

impl Chunk {
    fn read(chunk: &Document) -> Option<Self> {
        let bound = |name| chunk.get_document(name).ok().cloned();
        Some(Self {
            min: bound("min")?,
            max: bound("max")?,
            shard: chunk.get_str("shard").ok()?.to_owned(),
        })
    }
}

/// Tries again, for a while, what may pass.
pub async fn patiently<T, F>(attempt: impl Fn() -> F) -> Result<T, DriverError>
where
    F: Future<Output = Result<T, DriverError>>,
{
    patiently_for(STEP_TIMEOUT, attempt).await
}

/// Tries again, for so long, what may pass.
pub async fn patiently_for<T, F>(time: Duration, attempt: impl Fn() -> F) -> Result<T, DriverError>
where
    F: Future<Output = Result<T, DriverError>>,
{
    Backoff::new(PAUSE, LONGEST_PAUSE, Instant::now() + time).between(attempt, may_pass).await
}

fn is_conflict(error: &DriverError) -> bool {
    matches!(&*error.kind, ErrorKind::Command(error) if error.code == CONFLICT)
}

fn may_pass(error: &DriverError) -> bool {
    match &*error.kind {
        ErrorKind::Command(error) => !FINAL.contains(&error.code),
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => true,
        _ => false,
    }
}
