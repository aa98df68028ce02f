//! Change streams over all shards, as in mongos: the events of the shards' streams in the order of
//! their tokens. An event is returned once every shard has reported a later token. A shard without
//! writes reports one every few seconds.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::bson::{Bson, Document, RawDocumentBuf, Timestamp, doc};
use tokio::time::Instant;

use super::clock::Clock;
use super::command::Command;
use super::cursors::time_limit;
use super::fault::{Fault, is_ok};
use super::links::Links;

/// The time for which a getMore waits for one of the shards' replies.
const STEP: Duration = Duration::from_millis(50);
/// The time limit of a getMore without one.
const MAX_AWAIT: Duration = Duration::from_secs(1);
/// The events of a batch.
const BATCH: usize = 101;

/// The open change streams.
pub struct Streams {
    clock: Arc<Clock>,
    open: Mutex<HashMap<i64, Stream>>,
    next: AtomicI64,
}

struct Stream {
    space: String,
    shards: Vec<ShardStream>,
    /// The token after which the stream was resumed; empty if it was not.
    resumed: String,
}

/// The stream of one shard.
struct ShardStream {
    shard: usize,
    cursor: i64,
    events: VecDeque<Document>,
    /// The shard will report no more events up to this token.
    token: String,
}

impl Streams {
    pub fn new(clock: Arc<Clock>) -> Self {
        Self { clock, open: Mutex::default(), next: AtomicI64::new(1 << 50) }
    }

    /// Whether this is the cursor of a change stream.
    pub fn has(&self, id: i64) -> bool {
        self.open.lock().unwrap().contains_key(&id)
    }

    /// Forgets the streams of a killCursors. Those of the shards end when they are idle for long.
    pub fn kill(&self, ids: &[i64]) {
        self.open.lock().unwrap().retain(|id, _| !ids.contains(id));
    }

    /// Opens a stream on every shard.
    pub async fn watch(
        &self,
        command: &Command<'_>,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let mut body = command.document()?;
        for field in ["lsid", "$clusterTime", "$readPreference"] {
            body.remove(field);
        }
        if let Some(now) = self.clock.now() {
            body.insert("$clusterTime", Document::try_from(&*now.signed)?);
        }
        let resumed = self.begin(&mut body)?;
        let raw = RawDocumentBuf::try_from(&body)?;
        let requests: Vec<_> = links.shards().map(|shard| (shard, raw.clone())).collect();
        let mut shards = Vec::new();
        for ((shard, _), reply) in requests.iter().zip(links.send_all(&requests).await) {
            let mut stream = ShardStream {
                shard: *shard,
                cursor: 0,
                events: VecDeque::new(),
                token: String::new(),
            };
            stream.add(reply?, "firstBatch", &resumed)?;
            shards.push(stream);
        }
        let space = format!("{}.{}", command.database, body.get_str("aggregate").unwrap_or(""));
        let id = self.next.fetch_add(1, Relaxed);
        self.reply(id, Stream { space, shards, resumed }, "firstBatch")
    }

    /// Makes all shards begin at one time: that of the token to resume after, or the present one.
    /// Returns the token of the beginning.
    fn begin(&self, body: &mut Document) -> Result<String, Fault> {
        let malformed = || Fault::own(9, "FailedToParse", "no $changeStream");
        let stages = body.get_array_mut("pipeline").map_err(|_| malformed())?;
        let stage = stages.first_mut().and_then(Bson::as_document_mut).ok_or_else(malformed)?;
        let options = stage.get_document_mut("$changeStream").map_err(|_| malformed())?;
        let resumed = ["resumeAfter", "startAfter"].iter().find_map(|field| options.remove(field));
        let token = match resumed.as_ref().and_then(Bson::as_document) {
            Some(token) => token.get_str("_data").unwrap_or_default().to_owned(),
            None => String::new(),
        };
        let now = || {
            let now = self.clock.now().map(|now| now.time);
            now.map(|now| Timestamp { increment: now.increment + 1, ..now })
        };
        if let Some(start) = time_of(&token).or_else(now)
            && !options.contains_key("startAtOperationTime")
        {
            options.insert("startAtOperationTime", start);
        }
        Ok(token)
    }

    /// Returns the next events. Waits for some until the time limit of the command.
    pub async fn more(
        &self,
        command: &Command<'_>,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let id = command.body.get_i64("getMore")?;
        let known = self.open.lock().unwrap().remove(&id);
        let mut stream = known.ok_or_else(|| Fault::own(43, "CursorNotFound", "no such cursor"))?;
        let deadline = Instant::now() + time_limit(command.body).min(MAX_AWAIT);
        let name = stream.space.split_once('.').map_or("", |(_, name)| name).to_owned();
        while !stream.has_next() && Instant::now() < deadline {
            let mut requests = Vec::new();
            for one in &stream.shards {
                let more = doc! {
                    "getMore": one.cursor, "collection": &name, "$db": command.database,
                    "maxTimeMS": STEP.as_millis() as i64,
                };
                requests.push((one.shard, RawDocumentBuf::try_from(&more)?));
            }
            let replies = links.send_all(&requests).await;
            for (one, reply) in stream.shards.iter_mut().zip(replies) {
                one.add(reply?, "nextBatch", &stream.resumed)?;
            }
        }
        self.reply(id, stream, "nextBatch")
    }

    fn reply(&self, id: i64, mut stream: Stream, field: &str) -> Result<RawDocumentBuf, Fault> {
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some(event) = stream.next_event()
        {
            batch.push(event);
        }
        let token = match batch.last() {
            Some(event) if stream.has_next() => token_of(event).to_owned(),
            _ => stream.token().max(&stream.resumed).to_owned(),
        };
        let cursor = doc! {
            "id": id, "ns": &stream.space, field: batch, "postBatchResumeToken": { "_data": token },
        };
        let mut reply = doc! { "cursor": cursor, "ok": 1.0 };
        if let Some(now) = self.clock.now() {
            let gossip = Document::try_from(&*now.signed)?;
            reply.extend(doc! { "operationTime": now.time, "$clusterTime": gossip });
        }
        self.open.lock().unwrap().insert(id, stream);
        Ok(RawDocumentBuf::try_from(&reply)?)
    }
}

impl Stream {
    /// No shard will report further events up to this token.
    fn token(&self) -> &str {
        self.shards.iter().map(|one| one.token.as_str()).min().unwrap_or_default()
    }

    /// The shard with the next event that can be returned.
    fn next_shard(&self) -> Option<usize> {
        let first = |one: &ShardStream| Some(token_of(one.events.front()?).to_owned());
        let firsts = self.shards.iter().enumerate().filter_map(|(n, one)| Some((first(one)?, n)));
        let (token, shard) = firsts.min()?;
        (*token <= *self.token()).then_some(shard)
    }

    fn has_next(&self) -> bool {
        self.next_shard().is_some()
    }

    fn next_event(&mut self) -> Option<Document> {
        let shard = self.next_shard()?;
        self.shards[shard].events.pop_front()
    }
}

impl ShardStream {
    /// Adds the events after a token in a reply of the shard.
    fn add(&mut self, reply: RawDocumentBuf, field: &str, after: &str) -> Result<(), Fault> {
        let document = Document::try_from(&*reply)?;
        if !is_ok(&reply) {
            return Err(Fault::status_details(document));
        }
        let cursor = document.get_document("cursor").cloned().unwrap_or_default();
        self.cursor = cursor.get_i64("id").unwrap_or_default();
        let events = cursor.get_array(field).into_iter().flatten();
        let events = events.filter_map(Bson::as_document).filter(|event| token_of(event) > after);
        self.events.extend(events.cloned());
        let token = cursor.get_document("postBatchResumeToken");
        if let Ok(token) = token.and_then(|token| token.get_str("_data")) {
            self.token = token.to_owned();
        }
        Ok(())
    }
}

fn token_of(event: &Document) -> &str {
    event.get_document("_id").and_then(|id| id.get_str("_data")).unwrap_or_default()
}

/// The time in a token: its first nine bytes are a type and a timestamp.
fn time_of(token: &str) -> Option<Timestamp> {
    let part = |from: usize| u32::from_str_radix(token.get(from..from + 8)?, 16).ok();
    Some(Timestamp { time: part(2)?, increment: part(10)? })
}
