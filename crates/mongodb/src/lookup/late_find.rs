//! Finds that go on without a shard that hangs. A find that is late is sent again in parts beside
//! it, and parts that are late in smaller ones, down to single ids: what any of them answers is
//! used. The ids of a shard that hangs have no answer in the end; then they are away, and later
//! finds go without them at once. If nothing answers, all of the store may be slow: the find waits
//! then.

use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, pending};
use futures_util::stream::FuturesUnordered;
use mongodb::Collection;
use mongodb::bson::{Bson, RawDocumentBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::error::Fault;
use crate::database::away::range_of;
use crate::database::lateness::Lateness;
use crate::lookup::plain_find::{PlainFind, Query};
use crate::lookup::reply::Reply;
use crate::schema::fields::ID;

/// The number of parts into which ids are split. Few ids are split into single ones.
const PARTS: usize = 8;
const FEW: usize = 24;
/// The least time after which a find is given up of which no part is answered, while other finds
/// are.
const LEAST_WAIT: Duration = Duration::from_millis(500);
/// The interval at which such a find looks for answers to others.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The time for which the find of a part goes on when nobody waits for it: the router ends it then.
const GRACE: Duration = Duration::from_millis(50);

/// A call that looks up keys by several finds.
#[derive(Clone, Copy)]
pub struct Call {
    began: Instant,
    keys: usize,
}

impl Call {
    /// A call for this many keys that begins now.
    pub fn of(keys: usize) -> Self {
        Self { began: Instant::now(), keys }
    }
}

/// Sends a query of a call without the ids that are away, of which one may be probed beside it.
pub async fn find_without_away(
    lateness: &Arc<Lateness>,
    plain: &PlainFind,
    query: &Query<'_>,
    call: Call,
) -> Result<Reply, Fault> {
    let now = Instant::now();
    if !lateness.is_part_away(now) {
        return find_in_parts_if_late(lateness, plain, query, call).await;
    }
    let mut ids = (query.ids)();
    let away = lateness.take_away(&mut ids, now);
    if let Some((id, permit)) = lateness.probe(&away, now) {
        tokio::spawn(probe(lateness.clone(), plain.clone(), query.from.clone(), id, permit));
    }
    let mut reply = Reply::default();
    if !ids.is_empty() {
        let query = Query { ids: &|| ids.clone(), ..*query };
        reply = find_in_parts_if_late(lateness, plain, &query, call).await?;
        let unanswered: HashSet<_> = reply.unanswered.iter().map(bytes_of).collect();
        lateness.ids_answered(ids.iter().filter(|id| !unanswered.contains(bytes_of(id))));
    }
    reply.unanswered.extend(away);
    Ok(reply)
}

/// Finds an id that is away.
async fn probe(
    lateness: Arc<Lateness>,
    mut plain: PlainFind,
    from: Collection<RawDocumentBuf>,
    id: Bson,
    _permit: OwnedSemaphorePermit,
) {
    let start = Instant::now();
    plain.time = lateness.time_of_id(plain.time / 4).max(LEAST_WAIT);
    let most = plain.time;
    match timeout(2 * most, plain.send(&from, vec![id.clone()], &[ID])).await {
        Ok(Ok(_)) => {
            lateness.answered(start, false);
            lateness.ids_answered([&id].into_iter());
        }
        _ if start.elapsed() >= most => lateness.gave_up(&id),
        _ => {}
    }
}

/// Sends a query of a call, and in parts beside it if it is late.
async fn find_in_parts_if_late(
    lateness: &Arc<Lateness>,
    plain: &PlainFind,
    query: &Query<'_>,
    call: Call,
) -> Result<Reply, Fault> {
    let (ids, start) = ((query.ids)(), Instant::now());
    let late_after = lateness.late_after(ids.len(), start);
    let mut whole = pin!(plain.clone().send(query.from, ids, query.fields));
    let fault = match timeout(late_after, &mut whole).await {
        Ok(Ok(reply)) => {
            lateness.answered(start, true);
            return Ok(reply);
        }
        Ok(Err(fault)) if !fault.is_retryable() => return Err(fault),
        Ok(Err(fault)) => Some(fault),
        Err(_) => None,
    };
    let late = Late {
        lateness,
        plain,
        from: query.from,
        fields: query.fields,
        call,
        end: start + plain.time / 2,
    };
    let ids = (query.ids)();
    Box::pin(late.find(whole, fault, sorted(ids), start)).await
}

/// A find that is late.
struct Late<'f> {
    lateness: &'f Arc<Lateness>,
    plain: &'f PlainFind,
    from: &'f Collection<RawDocumentBuf>,
    fields: &'static [&'static str],
    call: Call,
    /// The time after which no more parts are sent.
    end: Instant,
}

impl Late<'_> {
    /// Waits for the whole find, which may have failed with a fault, and for its parts.
    async fn find(
        &self,
        mut whole: Pin<&mut impl Future<Output = Result<Reply, Fault>>>,
        mut fault: Option<Fault>,
        ids: Vec<Bson>,
        start: Instant,
    ) -> Result<Reply, Fault> {
        let count = ids.len();
        let mut parts = if count > 1 { self.parts(ids.clone()) } else { pending().boxed() };
        let mut is_unanswered = count == 1;
        let mut check = pin!(sleep_until(start + LEAST_WAIT));
        let mut is_known = false;
        loop {
            if is_unanswered && self.lateness.answers_in_part(self.call.began) {
                let waited = start.elapsed();
                let [is_away, is_over] = self.waits().map(|wait| waited >= wait || fault.is_some());
                if is_away && fault.is_none() && count == 1 && !is_known {
                    is_known = true;
                    self.lateness.gave_up(&ids[0]);
                }
                if is_over {
                    return Ok(Reply::without(ids));
                }
            }
            if is_unanswered && let Some(fault) = fault.take() {
                return Err(fault);
            }
            tokio::select! {
                outcome = &mut whole, if fault.is_none() => match outcome {
                    Ok(reply) => {
                        self.lateness.answered(start, false);
                        self.lateness.ids_answered(ids.iter());
                        return Ok(reply);
                    }
                    Err(failed) => fault = Some(failed),
                },
                found = &mut parts, if !is_unanswered => {
                    if found.unanswered.len() < count {
                        return Ok(found);
                    }
                    is_unanswered = true;
                }
                () = &mut check, if is_unanswered => {
                    check.as_mut().reset(Instant::now() + CHECK_INTERVAL);
                }
            }
        }
    }

    /// The times after which a find without any answer is given up while other finds are answered.
    /// After the first its id is away for later finds, after the second the find ends. That of a
    /// call for several keys ends sooner, because it delays the others.
    fn waits(&self) -> [Duration; 2] {
        let most = self.most();
        let time = self.lateness.time_of_id(most).max(LEAST_WAIT);
        [time, if self.call.keys > 1 { time } else { most.max(LEAST_WAIT) }]
    }

    /// The reply to sorted ids, which are split.
    fn parts(&self, ids: Vec<Bson>) -> BoxFuture<'_, Reply> {
        let size = if ids.len() > FEW { ids.len().div_ceil(PARTS) } else { 1 };
        Box::pin(async move {
            let parts = ids.chunks(size).map(|ids| self.part(ids.to_vec()));
            let mut pending: FuturesUnordered<_> = parts.collect();
            let mut all = Reply::default();
            while let Some(reply) = pending.next().await {
                all.add(reply);
            }
            all
        })
    }

    /// The reply to a part of the ids, without those that are away when it has its turn.
    async fn part(&self, mut ids: Vec<Bson>) -> Reply {
        let Some(turn) = self.lateness.turn(self.end).await else { return Reply::without(ids) };
        let away = self.lateness.take_away(&mut ids, Instant::now());
        let mut reply = match ids.len() {
            0 => Reply::default(),
            1 => self.single(ids, turn).await,
            _ => self.several(ids, turn).await,
        };
        reply.unanswered.extend(away);
        reply
    }

    /// The reply to several ids, which are split if it is late.
    async fn several(&self, ids: Vec<Bson>, turn: OwnedSemaphorePermit) -> Reply {
        let start = Instant::now();
        let mut find = self.send(&ids, self.lateness.time_of_id(self.most()), turn);
        let late_after = self.lateness.late_after(ids.len(), start) / 2;
        let mut is_over = match timeout(late_after, &mut find).await {
            Ok(Ok(Some(reply))) => return reply,
            ended => ended.is_ok(),
        };
        let mut parts = self.parts(ids);
        loop {
            tokio::select! {
                found = &mut parts => return found,
                ended = &mut find, if !is_over => match ended {
                    Ok(Some(reply)) => return reply,
                    _ => is_over = true,
                },
            }
        }
    }

    /// The reply to a single id. It is tried again if meanwhile other answers have taken so long
    /// that it may only be slow.
    async fn single(&self, ids: Vec<Bson>, turn: OwnedSemaphorePermit) -> Reply {
        let mut next_turn = Some(turn);
        while let Some(turn) = next_turn {
            let time = self.lateness.time_of_id(self.most());
            match timeout(time, self.send(&ids, time, turn)).await {
                Ok(Ok(Some(reply))) => return reply,
                Err(_) if self.lateness.time_of_id(self.most()) > time => {}
                Err(_) => {
                    self.lateness.gave_up(&ids[0]);
                    break;
                }
                Ok(_) => break,
            }
            next_turn = self.lateness.turn(self.end).await;
        }
        Reply::without(ids)
    }

    /// The most time that a single id is waited for.
    fn most(&self) -> Duration {
        self.plain.time / 4
    }

    /// Sends a find in its turn, in a task: it runs to its end, which is near.
    fn send(
        &self,
        ids: &[Bson],
        time: Duration,
        turn: OwnedSemaphorePermit,
    ) -> JoinHandle<Option<Reply>> {
        let plain = PlainFind { time: time + GRACE, ..self.plain.clone() };
        let (from, ids, fields) = (self.from.clone(), ids.to_vec(), self.fields);
        let lateness = self.lateness.clone();
        tokio::spawn(async move {
            let (start, most) = (Instant::now(), 2 * plain.time);
            let found = timeout(most, plain.send(&from, ids, fields)).await;
            drop(turn);
            let reply = found.ok()?.ok()?;
            lateness.answered(start, start.elapsed() < time);
            Some(reply)
        })
    }
}

/// The ids in the order of their ranges: neighbours are mostly on one shard.
fn sorted(mut ids: Vec<Bson>) -> Vec<Bson> {
    ids.sort_by_cached_key(range_of);
    ids
}

fn bytes_of(id: &Bson) -> &[u8] {
    match id {
        Bson::String(key) => key.as_bytes(),
        Bson::Binary(id) => &id.bytes,
        _ => &[],
    }
}
