//! Finds that go on without a shard that hangs. A find that is late is sent again in parts beside
//! it, and parts that are late in smaller ones, down to single ids: what any of them answers is
//! used. The ids of a shard that hangs have no answer in the end. If nothing answers, all of the
//! store may be slow: the find waits then.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, pending};
use futures_util::stream::FuturesUnordered;
use mongodb::Collection;
use mongodb::bson::{Bson, RawDocumentBuf};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::error::Fault;
use crate::database::lateness::Lateness;
use crate::lookup::plain_find::{PlainFind, Query};
use crate::lookup::reply::Reply;

/// The number of parts into which ids are split.
const PARTS: usize = 8;
/// The least time after which a find is given up of which no part is answered, while other finds
/// are.
const LEAST_WAIT: Duration = Duration::from_millis(500);
/// The interval at which such a find looks for answers to others.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The time for which the find of a part goes on when nobody waits for it: the router ends it then.
const GRACE: Duration = Duration::from_millis(100);

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

/// Sends a query of a call, and in parts beside it if it is late.
pub async fn find_in_parts_if_late(
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
        let (mut parts, mut unanswered) = if count > 1 {
            (self.parts(ids), None)
        } else {
            (pending().boxed(), Some(Reply::without(ids)))
        };
        let mut check = pin!(sleep_until(start + LEAST_WAIT));
        loop {
            let has_waited = start.elapsed() >= self.wait() || fault.is_some();
            if has_waited
                && self.lateness.answers_in_part(self.call.began)
                && let Some(found) = unanswered.take()
            {
                return Ok(self.given_up(found));
            }
            if unanswered.is_some()
                && let Some(fault) = fault.take()
            {
                return Err(fault);
            }
            tokio::select! {
                outcome = &mut whole, if fault.is_none() => match outcome {
                    Ok(reply) => {
                        self.lateness.answered(start, false);
                        return Ok(reply);
                    }
                    Err(failed) => fault = Some(failed),
                },
                found = &mut parts, if unanswered.is_none() => {
                    if found.unanswered.len() < count {
                        return Ok(self.given_up(found));
                    }
                    unanswered = Some(found);
                }
                () = &mut check, if unanswered.is_some() => {
                    check.as_mut().reset(Instant::now() + CHECK_INTERVAL);
                }
            }
        }
    }

    /// The time after which a find is given up of which no part is answered, while other finds are.
    /// It delays other keys of its call.
    fn wait(&self) -> Duration {
        let most = self.most();
        let time = if self.call.keys > 1 { self.lateness.time_of_id(most) } else { most };
        time.max(LEAST_WAIT)
    }

    /// Records that the ids of a reply without an answer are given up.
    fn given_up(&self, found: Reply) -> Reply {
        if !found.unanswered.is_empty() {
            self.lateness.gave_up();
        }
        found
    }

    /// The reply to sorted ids, which are split.
    fn parts(&self, ids: Vec<Bson>) -> BoxFuture<'_, Reply> {
        let size = ids.len().div_ceil(PARTS).max(1);
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

    /// The reply to a part of the ids, which is split again if it is late.
    async fn part(&self, ids: Vec<Bson>) -> Reply {
        if ids.len() == 1 {
            return self.single(ids).await;
        }
        let start = Instant::now();
        let Some(mut find) = self.send(&ids, self.lateness.time_of_id(self.most())).await else {
            return Reply::without(ids);
        };
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
    async fn single(&self, ids: Vec<Bson>) -> Reply {
        loop {
            let time = self.lateness.time_of_id(self.most());
            let Some(find) = self.send(&ids, time).await else { return Reply::without(ids) };
            match timeout(time, find).await {
                Ok(Ok(Some(reply))) => return reply,
                Err(_) if self.lateness.time_of_id(self.most()) > time => {}
                _ => return Reply::without(ids),
            }
        }
    }

    /// The most time that a single id is waited for.
    fn most(&self) -> Duration {
        self.plain.time / 4
    }

    /// Sends a find in its turn, in a task: it runs to its end, which is near.
    async fn send(&self, ids: &[Bson], time: Duration) -> Option<JoinHandle<Option<Reply>>> {
        let turn = self.lateness.turn(self.end).await?;
        let plain = PlainFind { time: time + GRACE, ..self.plain.clone() };
        let (from, ids, fields) = (self.from.clone(), ids.to_vec(), self.fields);
        let lateness = self.lateness.clone();
        Some(tokio::spawn(async move {
            let (start, most) = (Instant::now(), 2 * plain.time);
            let found = timeout(most, plain.send(&from, ids, fields)).await;
            drop(turn);
            let reply = found.ok()?.ok()?;
            lateness.answered(start, start.elapsed() < time);
            Some(reply)
        }))
    }
}

/// The ids in the order of their bytes, in which neighbours are on one shard if it has a range of
/// them.
fn sorted(mut ids: Vec<Bson>) -> Vec<Bson> {
    ids.sort_unstable_by(|one, other| bytes_of(one).cmp(bytes_of(other)));
    ids
}

fn bytes_of(id: &Bson) -> &[u8] {
    match id {
        Bson::String(key) => key.as_bytes(),
        Bson::Binary(id) => &id.bytes,
        _ => &[],
    }
}
