//! A sharded cluster, through its router: shards and chunks, and the commands that split and move
//! chunks. Other runs and the balancer may do the same work: every step first checks whether it is
//! done, and is retried. `presplit` decides which chunks there should be.

use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use mongodb::error::{Error as DriverError, ErrorKind, WriteFailure};
use mongodb::options::Hint;
use tokio::time::{Instant, timeout};

use crate::client::backoff::Backoff;
use crate::client::documents::collect;
use crate::client::error::has_code;
use crate::command::run::run;
use crate::schema::fields::{ID, USERS};
use crate::setup::presplit::Hashes;
use crate::setup::validators::shard_key;

/// The time limit of a step, and the time for which it is retried.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for the creation of an index, which reads the whole collection.
pub const INDEX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum time of a probe on a shard.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for which a move waits for other moves: a shard takes part in one at a time, which may
/// take minutes.
const MOVE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(2);

/// The age in milliseconds of the latest report of a live router; routers report twice a minute.
const MAX_REPORT_AGE_MS: i64 = 5 * 60 * 1_000;

/// ConflictingOperationInProgress.
const CONFLICTING_OPERATION: i32 = 117;

/// Unauthorized, AuthenticationFailed, IllegalOperation, CommandNotFound: a retry does not help.
const PERMANENT: [i32; 4] = [13, 18, 20, 59];

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
    /// The cluster of `database`; `None` on a replica set.
    pub async fn of(database: &Database) -> Result<Option<Self>, DriverError> {
        let hello = database.run_command(doc! { "hello": 1 }).await?;
        if hello.get_str("msg").ok() != Some("isdbgrid") {
            return Ok(None);
        }
        let [admin, config] = ["admin", "config"].map(|name| database.client().database(name));
        Ok(Some(Self { database: database.clone(), admin, config }))
    }

    /// The names of the shards, in order, without those that are being removed.
    pub async fn shards(&self) -> Result<Vec<String>, DriverError> {
        let reply = run(&self.admin, doc! { "listShards": 1 }, STEP_TIMEOUT).await?;
        let shards = reply.get_array("shards").into_iter().flatten().filter_map(Bson::as_document);
        let staying = shards.filter(|shard| !shard.get_bool("draining").unwrap_or_default());
        let mut names: Vec<_> =
            staying.filter_map(|shard| shard.get_str(ID).ok()).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The shards that do not answer a find among users, in order. A shard without users counts as
    /// answering.
    pub async fn silent_shards(&self) -> Result<Vec<String>, DriverError> {
        let chunks = self.chunks(USERS).await?;
        let users = self.database.collection::<RawDocumentBuf>(USERS);
        let answers = async |shard: &String| {
            let Some(chunk) = chunks.iter().find(|chunk| chunk.shard == *shard) else {
                return true;
            };
            // A range would also ask the shard that has its end.
            let find = users.find_one(doc! { ID: chunk.min.get(ID).cloned() });
            let find = find.projection(doc! { ID: 1 }).max_time(PROBE_TIMEOUT);
            let answer = timeout(2 * PROBE_TIMEOUT, find.into_future()).await;
            // A lack of privileges is an answer.
            answer.is_ok_and(|answer| answer.err().is_none_or(|error| !is_retryable(&error)))
        };
        let shards = self.shards().await?;
        let answers = join_all(shards.iter().map(answers)).await;
        let silent = shards.into_iter().zip(answers).filter(|(_, answers)| !answers);
        Ok(silent.map(|(shard, _)| shard).collect())
    }

    /// The versions of the live routers.
    pub async fn router_versions(&self) -> Result<Vec<String>, DriverError> {
        let oldest = DateTime::from_millis(DateTime::now().timestamp_millis() - MAX_REPORT_AGE_MS);
        let routers = self.find("mongos", doc! { "ping": { "$gte": oldest } }).await?;
        let versions = routers.iter().filter_map(|router| router.get_str("mongoVersion").ok());
        Ok(versions.map(str::to_owned).collect())
    }

    /// The documents of a collection of the config database that a filter matches.
    async fn find(&self, collection: &str, filter: Document) -> Result<Vec<Document>, DriverError> {
        let collection = self.config.collection(collection);
        collect(collection.find(filter).max_time(STEP_TIMEOUT).await?).await
    }

    /// The shard key of `collection`, if it is sharded.
    pub async fn key_of(&self, collection: &str) -> Result<Option<Document>, DriverError> {
        Ok(self.entry(collection).await?.and_then(|entry| entry.get_document("key").ok().cloned()))
    }

    /// The entry of a sharded collection. MongoDB 8.0 lists some others, too: those are on one
    /// shard, and `unsplittable`.
    async fn entry(&self, collection: &str) -> Result<Option<Document>, DriverError> {
        let is_not = doc! { "$ne": true };
        let filter = doc! {
            ID: self.namespace(collection), "dropped": &is_not, "unsplittable": &is_not,
        };
        Ok(self.find("collections", filter).await?.pop())
    }

    fn namespace(&self, collection: &str) -> String {
        format!("{}.{collection}", self.database.name())
    }

    /// The chunks of `collection`, in no order.
    pub async fn chunks(&self, collection: &str) -> Result<Vec<Chunk>, DriverError> {
        let Some(filter) = self.chunk_filter(collection).await? else { return Ok(Vec::new()) };
        Ok(self.find("chunks", filter).await?.iter().filter_map(Chunk::read).collect())
    }

    /// The chunk that begins at `start`.
    async fn chunk_at(&self, collection: &str, start: &Bson) -> Result<Option<Chunk>, DriverError> {
        let Some(mut filter) = self.chunk_filter(collection).await? else { return Ok(None) };
        filter.insert(format!("min.{ID}"), start.clone());
        Ok(self.find("chunks", filter).await?.first().and_then(Chunk::read))
    }

    /// The filter for the chunks of a collection. Chunks have its UUID, and before MongoDB 5.0 its
    /// name.
    async fn chunk_filter(&self, collection: &str) -> Result<Option<Document>, DriverError> {
        let Some(entry) = self.entry(collection).await? else { return Ok(None) };
        let by_name = doc! { "ns": self.namespace(collection) };
        Ok(Some(entry.get("uuid").map_or(by_name, |uuid| doc! { "uuid": uuid.clone() })))
    }

    /// Enables sharding for the database.
    pub async fn enable(&self) -> Result<(), DriverError> {
        let command = doc! { "enableSharding": self.database.name() };
        let enable = async || run(&self.admin, command.clone(), STEP_TIMEOUT).await;
        retry_step(enable).await.map(drop)
    }

    /// Creates the index that a collection with documents needs before it is sharded on `key`.
    pub async fn create_index(&self, collection: &str, key: &Document) -> Result<(), DriverError> {
        let name: Vec<_> = key
            .iter()
            .map(|(field, kind)| format!("{field}_{}", kind.as_str().unwrap_or("1")))
            .collect();
        let index = doc! { "key": key.clone(), "name": name.join("_") };
        let command = doc! { "createIndexes": collection, "indexes": [index] };
        let create = async || run(&self.database, command.clone(), INDEX_TIMEOUT).await;
        retry_step(create).await.map(drop)
    }

    /// Shards `collection` and returns whether it was unsharded. Existing documents stay in one
    /// chunk; an empty collection with a hashed key gets chunks on all shards.
    pub async fn shard(&self, collection: &str) -> Result<bool, DriverError> {
        let command =
            doc! { "shardCollection": self.namespace(collection), "key": shard_key(collection) };
        let shard = async || {
            let is_unsharded = self.key_of(collection).await?.is_none();
            if is_unsharded {
                run(&self.admin, command.clone(), STEP_TIMEOUT).await?;
            }
            Ok(is_unsharded)
        };
        retry_step(shard).await
    }

    /// Splits a chunk so that one begins at `start`. Returns whether a split was necessary.
    pub async fn split(&self, collection: &str, start: &Bson) -> Result<bool, DriverError> {
        let command = doc! { "split": self.namespace(collection), "middle": { ID: start.clone() } };
        let split = async || {
            let is_missing = self.chunk_at(collection, start).await?.is_none();
            if is_missing {
                run(&self.admin, command.clone(), STEP_TIMEOUT).await?;
            }
            Ok(is_missing)
        };
        retry_step(split).await
    }

    /// Moves the chunk that begins at `start` to `shard`, unless it has documents. Returns whether
    /// it was moved.
    pub async fn move_empty_chunk(
        &self,
        collection: &str,
        start: &Bson,
        shard: &str,
    ) -> Result<bool, DriverError> {
        let move_chunk = async || {
            let chunk =
                self.chunk_at(collection, start).await?.filter(|chunk| chunk.shard != shard);
            let Some(chunk) = chunk else { return Ok(false) };
            let is_empty = self.is_empty(collection, &chunk).await?;
            if is_empty {
                let space = self.namespace(collection);
                let command =
                    doc! { "moveChunk": space, "bounds": [chunk.min, chunk.max], "to": shard };
                run(&self.admin, command, MOVE_TIMEOUT).await?;
            }
            Ok(is_empty)
        };
        let since = Instant::now();
        let can_retry = |error: &DriverError| {
            is_conflict(error) || (is_retryable(error) && since.elapsed() < STEP_TIMEOUT)
        };

        Backoff::new(MIN_BACKOFF, MAX_BACKOFF, since + MOVE_TIMEOUT)
            .retry(move_chunk, can_retry)
            .await
    }

    async fn is_empty(&self, collection: &str, chunk: &Chunk) -> Result<bool, DriverError> {
        let documents = self.database.collection::<RawDocumentBuf>(collection);
        let key = self.key_of(collection).await?.unwrap_or_else(|| shard_key(collection));
        let (min, max) = (chunk.min.clone(), chunk.max.clone());
        let first = documents.find_one(doc! {}).min(min).max(max).hint(Hint::Keys(key));
        Ok(first.projection(doc! { ID: 1 }).max_time(STEP_TIMEOUT).await?.is_none())
    }

    /// The chunks of a collection that is sharded on hashes, with the indices of their shards in
    /// `shards`.
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

/// Retries a step for [`STEP_TIMEOUT`].
pub async fn retry_step<T, F>(attempt: impl Fn() -> F) -> Result<T, DriverError>
where
    F: Future<Output = Result<T, DriverError>>,
{
    retry_for(STEP_TIMEOUT, attempt).await
}

/// Retries a step for a time.
pub async fn retry_for<T, F>(time: Duration, attempt: impl Fn() -> F) -> Result<T, DriverError>
where
    F: Future<Output = Result<T, DriverError>>,
{
    Backoff::new(MIN_BACKOFF, MAX_BACKOFF, Instant::now() + time).retry(attempt, is_retryable).await
}

fn is_conflict(error: &DriverError) -> bool {
    has_code(&error.kind, CONFLICTING_OPERATION)
}

fn is_retryable(error: &DriverError) -> bool {
    match &*error.kind {
        ErrorKind::Command(error) => !PERMANENT.contains(&error.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(_))
        | ErrorKind::Io(_)
        | ErrorKind::ConnectionPoolCleared { .. } => true,
        _ => false,
    }
}
