//! Finds and their cursors: a find goes to the shards that own its keys, and a cursor of the front
//! end stands for those of the shards. Outside transactions a find waits for a shard that is away,
//! as mongos does.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::bson::raw::cstr;
use mongodb::bson::{
    Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, doc, rawdoc,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::chunks::Chunks;
use super::clock::Clock;
use super::command::Command;
use super::fault::Fault;
use super::links::Links;
use super::statement::{Part, Statement, accepted};
use super::tables::Tables;

/// The documents of a first batch, if the command names no number.
const FIRST_BATCH: usize = 101;
/// The time in which a router waits for a shard, and its pause between two attempts.
const WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// The attempts with outdated tables.
const REFRESHES: usize = 10;

/// The open cursors.
pub struct Finds {
    clock: Arc<Clock>,
    cursors: Mutex<HashMap<i64, Cursor>>,
    next: AtomicI64,
}

/// The rest of a find.
struct Cursor {
    space: String,
    /// The shards' cursors, each with the index of its shard.
    open: VecDeque<(usize, i64)>,
    buffered: VecDeque<Bson>,
    /// The documents that the limit still allows.
    remaining: usize,
    /// The time of the snapshot.
    at: Option<Timestamp>,
    /// The latest time of the shards' operations.
    operation: Option<Timestamp>,
}

impl Cursor {
    /// Adds what shards have replied.
    fn add(&mut self, mut replies: Replies) {
        self.buffered.append(&mut replies.documents);
        self.open.append(&mut replies.open);
        self.at = self.at.max(replies.at);
        self.operation = self.operation.max(replies.operation);
    }
}

/// The replies of all shards to a find.
#[derive(Default)]
pub struct Replies {
    documents: VecDeque<Bson>,
    open: VecDeque<(usize, i64)>,
    at: Option<Timestamp>,
    operation: Option<Timestamp>,
}

impl Replies {
    /// Adds the reply of a shard.
    pub fn add(&mut self, shard: usize, reply: &RawDocument) -> Result<(), Fault> {
        let mut reply = Document::try_from(reply)?;
        self.operation = self.operation.max(reply.get_timestamp("operationTime").ok());
        let Ok(cursor) = reply.get_document_mut("cursor") else { return Ok(()) };
        self.at = self.at.max(cursor.get_timestamp("atClusterTime").ok());
        if let Some(id) = cursor.get_i64("id").ok().filter(|id| *id != 0) {
            self.open.push_back((shard, id));
        }
        for field in ["firstBatch", "nextBatch"] {
            if let Ok(batch) = cursor.get_array_mut(field) {
                self.documents.extend(batch.drain(..));
            }
        }
        Ok(())
    }
}

impl Finds {
    pub fn new(clock: Arc<Clock>) -> Self {
        Self { clock, cursors: Mutex::default(), next: AtomicI64::new(1 << 40) }
    }

    /// Whether this is a cursor of the front end.
    pub fn has(&self, id: i64) -> bool {
        self.cursors.lock().unwrap().contains_key(&id)
    }

    /// Executes a find outside transactions. `None` if only the router in a shard can: it sorts
    /// over several shards, or the collection is not sharded.
    pub async fn find(
        &self,
        tables: &Tables,
        command: &Command<'_>,
        links: &mut Links,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        if matches!(command.database, "config" | "admin" | "local") {
            return Ok(None);
        }
        let space = format!("{}.{}", command.database, command.body.get_str("find")?);
        let at = self.snapshot_time(command.body);
        let statement = Statement::new(command)?;
        let (mut refreshes, wait_end) = (0, Instant::now() + WAIT);
        let deadline = Instant::now() + time_limit(command.body);
        loop {
            let Some(chunks) = tables.sharded(&space, links).await? else { return Ok(None) };
            let Ok(rounds) = statement.rounds(&chunks) else { return Ok(None) };
            let parts = rounds.into_iter().flatten().collect();
            let attempt = self.attempt(&statement, parts, &chunks, at, links);
            let fault = match timeout_at(deadline, attempt).await {
                Ok(Ok(replies)) => return self.first_batch(&space, command, replies).map(Some),
                Ok(Err(fault)) => fault,
                Err(_) => return Err(expired()),
            };
            if fault.is_stale() && refreshes < REFRESHES {
                refreshes += 1;
                tables.forget_this(&space, &chunks);
            } else if fault.is_away() && Instant::now() < wait_end {
                if timeout_at(deadline, sleep(PAUSE)).await.is_err() {
                    return Err(expired());
                }
            } else {
                return Err(fault);
            }
        }
    }

    async fn attempt(
        &self,
        statement: &Statement<'_, '_>,
        parts: Vec<Part>,
        chunks: &Chunks,
        at: Option<Timestamp>,
        links: &mut Links,
    ) -> Result<Replies, Fault> {
        let body = statement.body();
        let mut requests = Vec::with_capacity(parts.len());
        for part in &parts {
            let mut request = statement.request(part, chunks)?;
            for field in [cstr!("lsid"), cstr!("readConcern")] {
                let Some(value) = body.get(field)? else { continue };
                match at.filter(|_| field.as_str() == "readConcern") {
                    None => request.append(field, value),
                    Some(at) => {
                        let concern = rawdoc! { "level": "snapshot", "atClusterTime": at };
                        request.append(field, concern);
                    }
                }
            }
            if let Some(now) = self.clock.now() {
                request.append(cstr!("$clusterTime"), now.signed);
            }
            requests.push((part.shard, request));
        }
        let mut replies = Replies::default();
        for (part, reply) in parts.iter().zip(links.send_all(&requests).await) {
            replies.add(part.shard, &accepted(part, reply?)?)?;
        }
        Ok(replies)
    }

    /// The time of a snapshot outside transactions: the latest time that this router knows, which
    /// shards and other routers may be ahead of.
    fn snapshot_time(&self, body: &RawDocument) -> Option<Timestamp> {
        let concern = body.get_document("readConcern").ok()?;
        if concern.get_str("level").ok()? != "snapshot" {
            return None;
        }
        let given = concern.get_timestamp("atClusterTime").ok();
        given.or_else(|| self.clock.now().map(|now| now.time))
    }

    /// The reply to a find.
    pub fn first_batch(
        &self,
        space: &str,
        command: &Command<'_>,
        replies: Replies,
    ) -> Result<RawDocumentBuf, Fault> {
        let limit = integer(command.body, "limit").filter(|limit| *limit > 0);
        let size = integer(command.body, "batchSize").unwrap_or(FIRST_BATCH);
        let single = command.body.get_bool("singleBatch").unwrap_or_default();
        let mut cursor = Cursor {
            space: space.to_owned(),
            open: VecDeque::new(),
            buffered: VecDeque::new(),
            remaining: limit.unwrap_or(usize::MAX),
            at: None,
            operation: None,
        };
        cursor.add(replies);
        let id = self.next.fetch_add(1, Relaxed);
        self.batch("firstBatch", id, cursor, size, single)
    }

    /// Executes a getMore of a cursor of the front end. `mark` adds the transaction to the command
    /// for a shard.
    pub async fn more(
        &self,
        command: &Command<'_>,
        mark: impl Fn(usize, &mut RawDocumentBuf),
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let id = command.body.get_i64("getMore")?;
        let known = self.cursors.lock().unwrap().remove(&id);
        let mut cursor = known.ok_or_else(|| Fault::own(43, "CursorNotFound", "no such cursor"))?;
        let size = integer(command.body, "batchSize").unwrap_or(usize::MAX);
        while cursor.buffered.is_empty()
            && let Some((shard, shards_id)) = cursor.open.pop_front()
        {
            let collection = cursor.space.split_once('.').map_or("", |(_, name)| name);
            let mut more = rawdoc! { "getMore": shards_id, "collection": collection };
            if size < usize::MAX {
                more.append(cstr!("batchSize"), size as i64);
            }
            more.append(cstr!("$db"), command.database);
            mark(shard, &mut more);
            let reply = links.send_all(&[(shard, more)]).await.remove(0)?;
            let part = Part { shard, items: Vec::new() };
            let mut replies = Replies::default();
            replies.add(shard, &accepted(&part, reply)?)?;
            cursor.add(replies);
        }
        self.batch("nextBatch", id, cursor, size, false)
    }

    /// Forgets the cursors of a killCursors. Those of the shards end with their sessions.
    pub fn kill(&self, ids: &[i64]) {
        self.cursors.lock().unwrap().retain(|id, _| !ids.contains(id));
    }

    fn batch(
        &self,
        field: &str,
        id: i64,
        mut cursor: Cursor,
        size: usize,
        single: bool,
    ) -> Result<RawDocumentBuf, Fault> {
        let count = size.min(cursor.remaining).min(cursor.buffered.len());
        let batch: Vec<Bson> = cursor.buffered.drain(..count).collect();
        cursor.remaining -= count;
        let has_ended = single
            || cursor.remaining == 0
            || (cursor.buffered.is_empty() && cursor.open.is_empty());
        let id = if has_ended { 0 } else { id };
        let mut reply =
            doc! { "cursor": { field: batch, "id": id, "ns": &cursor.space }, "ok": 1.0 };
        let operation = cursor.operation;
        if let (Some(at), Ok(reply)) = (cursor.at, reply.get_document_mut("cursor")) {
            reply.insert("atClusterTime", at);
        }
        if !has_ended {
            self.cursors.lock().unwrap().insert(id, cursor);
        }
        let mut raw = RawDocumentBuf::try_from(&reply)?;
        self.append_times(&mut raw, operation);
        Ok(raw)
    }

    /// Appends the times of a reply: the latest of the shards' operations, and of the cluster.
    pub fn append_times(&self, reply: &mut RawDocumentBuf, operation: Option<Timestamp>) {
        if let Some(now) = self.clock.now() {
            reply.append(cstr!("operationTime"), operation.unwrap_or(now.time));
            reply.append(cstr!("$clusterTime"), now.signed);
        }
    }
}

/// The error of a command whose time limit has passed.
pub fn expired() -> Fault {
    Fault::own(50, "MaxTimeMSExpired", "operation exceeded time limit")
}

/// The time limit of a command.
pub fn time_limit(body: &RawDocument) -> Duration {
    const NO_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
    integer(body, "maxTimeMS").map_or(NO_LIMIT, |millis| Duration::from_millis(millis as u64))
}

fn integer(body: &RawDocument, field: &str) -> Option<usize> {
    match body.get(field).ok()?? {
        RawBsonRef::Int32(number) => usize::try_from(number).ok(),
        RawBsonRef::Int64(number) => usize::try_from(number).ok(),
        RawBsonRef::Double(number) => Some(number as usize),
        _ => None,
    }
}
