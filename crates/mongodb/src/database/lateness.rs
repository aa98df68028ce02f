//! When a find is late: usually a shard that it needs hangs then, while others answer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mongodb::bson::Bson;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::client::reachability::Reachability;
use crate::database::away::{Away, range_of};
use polynym_layers::latency::UsualLatency;

/// The least time after which a find is late, and the same soon after a part of the store was given
/// up.
const LEAST: Duration = Duration::from_millis(200);
const LEAST_WHILE_AWAY: Duration = Duration::from_millis(50);
/// The time for which a part that was given up counts as away.
const AWAY: Duration = Duration::from_secs(2);
/// An id is known to be given up only if a find that began this short before was answered.
const ANSWERING: Duration = Duration::from_millis(500);
/// The least time that a single id is waited for.
const LEAST_TIME: Duration = Duration::from_millis(150);
/// An id is given up after this many times the latency of the slowest recent find.
const PEAKS: u32 = 4;
/// The time that each id adds.
const EACH_ID: Duration = Duration::from_micros(200);
/// The most concurrent finds of parts, of all look-ups: each holds a connection.
const MAX_PARTS: usize = 32;
/// The most concurrent probes of ids that are away.
const MAX_PROBES: usize = 4;

/// The recent latencies of a store's finds of one consistency, and what is away for them.
pub struct Lateness {
    usual: UsualLatency,
    /// The latency of the slowest recent find, in microseconds. Each find lowers it by a sixteenth,
    /// unless it took longer itself.
    peak: AtomicU64,
    reachability: Arc<Reachability>,
    began: Instant,
    /// The time when the latest find began that was answered in time, in microseconds.
    in_time: AtomicU64,
    /// The time when ids were last given up, in microseconds; 0 for never.
    gave_up: AtomicU64,
    away: Mutex<Away>,
    parts: Arc<Semaphore>,
    probes: Arc<Semaphore>,
}

impl Lateness {
    pub fn new(reachability: Arc<Reachability>) -> Self {
        Self {
            usual: UsualLatency::default(),
            peak: AtomicU64::new(0),
            reachability,
            began: Instant::now(),
            in_time: AtomicU64::new(0),
            gave_up: AtomicU64::new(0),
            away: Mutex::default(),
            parts: Arc::new(Semaphore::new(MAX_PARTS)),
            probes: Arc::new(Semaphore::new(MAX_PROBES)),
        }
    }

    /// The time after which a find of this many ids that begins now is late.
    pub fn late_after(&self, ids: usize, now: Instant) -> Duration {
        let least = if self.is_part_away(now) { LEAST_WHILE_AWAY } else { LEAST };
        self.usual.late_after(least) + EACH_ID * ids as u32
    }

    /// Records that a find was answered, and whether it was in time.
    pub fn answered(&self, start: Instant, is_in_time: bool) {
        let took = start.elapsed();
        self.usual.learn(took);
        let peak = self.peak.load(Relaxed);
        self.peak.store((took.as_micros() as u64).max(peak - peak / 16), Relaxed);
        if is_in_time {
            self.in_time.fetch_max(self.micros(start), Relaxed);
        }
    }

    /// The time after which an id is given up, while others of its find are answered: much more
    /// than any answer takes now, so that a store that is slow as a whole answers all of them.
    pub fn time_of_id(&self, most: Duration) -> Duration {
        (PEAKS * Duration::from_micros(self.peak.load(Relaxed))).max(LEAST_TIME).min(most)
    }

    /// Whether a part of the store was given up shortly before.
    pub fn is_part_away(&self, now: Instant) -> bool {
        is_recent(self.gave_up.load(Relaxed), self.micros(now))
    }

    /// Records that an id was given up that had a find of its own, if others are answered now.
    pub fn gave_up(&self, id: &Bson) {
        let now = Instant::now();
        if !self.answers_in_part(now.checked_sub(ANSWERING).unwrap_or(now)) {
            return;
        }
        let (index, now) = (range_of(id), self.micros(now));
        let mut away = self.lock();
        if !is_recent(self.gave_up.swap(now, Relaxed), now) {
            away.clear();
        }
        away.gave_up(index, now);
    }

    /// Records that ids were answered, if a part of the store is away.
    pub fn ids_answered<'i>(&self, ids: impl Iterator<Item = &'i Bson>) {
        let now = Instant::now();
        if self.is_part_away(now) {
            let (ranges, now) = (ids.map(range_of).collect::<Vec<_>>(), self.micros(now));
            let mut away = self.lock();
            ranges.into_iter().for_each(|index| away.answered(index, now));
        }
    }

    /// Takes the ids that are away out of `ids`: none unless a part was given up shortly before,
    /// and others answer.
    pub fn take_away(&self, ids: &mut Vec<Bson>, now: Instant) -> Vec<Bson> {
        let is_answering = is_recent(self.in_time.load(Relaxed), self.micros(now));
        if !is_answering || !self.is_part_away(now) {
            return Vec::new();
        }
        let away = self.lock();
        ids.extract_if(.., |id| away.contains(range_of(id))).collect()
    }

    /// The id to probe now among these, which are away, and the permit for it.
    pub fn probe(&self, away: &[Bson], now: Instant) -> Option<(Bson, OwnedSemaphorePermit)> {
        let permit = self.probes.clone().try_acquire_owned().ok()?;
        let (now, mut ranges) = (self.micros(now), self.lock());
        let id = away.iter().find(|id| ranges.begin_probe(range_of(id), now))?;
        Some((id.clone(), permit))
    }

    fn lock(&self) -> MutexGuard<'_, Away> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a part of the store has answered in time since then. Otherwise all of it may be slow
    /// or away: then it helps to wait.
    pub fn answers_in_part(&self, since: Instant) -> bool {
        self.in_time.load(Relaxed) >= self.micros(since) || self.reachability.is_part()
    }

    /// Waits for the turn of a part, at most until `end`.
    pub async fn turn(&self, end: Instant) -> Option<OwnedSemaphorePermit> {
        timeout_at(end, self.parts.clone().acquire_owned()).await.ok()?.ok()
    }

    /// Microseconds since the store was opened, at least 1.
    fn micros(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.began).as_micros() as u64 + 1
    }
}

/// Whether a time, 0 for never, is at most [`AWAY`] before now.
fn is_recent(time: u64, now: u64) -> bool {
    time > 0 && now < time + AWAY.as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_find_is_late_sooner_while_a_part_is_away() {
        let lateness = Lateness::new(Arc::default());
        assert_eq!(lateness.late_after(0, Instant::now()), LEAST);
        lateness.answered(Instant::now(), true);
        lateness.gave_up(&"joe".into());
        let now = Instant::now();
        assert_eq!(lateness.late_after(5, now), LEAST_WHILE_AWAY + 5 * EACH_ID);
        assert_eq!(lateness.late_after(0, now + AWAY), LEAST);
    }

    #[test]
    fn ids_are_away_for_some_time_while_others_answer() {
        let lateness = Lateness::new(Arc::default());
        let away = |now| lateness.take_away(&mut vec!["joe".into(), "ann".into()], now);
        lateness.gave_up(&"joe".into());
        lateness.answered(Instant::now(), true);
        assert_eq!(away(Instant::now()), [], "nothing was answered before");
        lateness.gave_up(&"joe".into());
        let now = Instant::now();
        assert_eq!(away(now), ["joe".into()]);
        lateness.answered(now + AWAY, true);
        assert_eq!(away(now + AWAY), [], "the time is over");
    }

    #[test]
    fn an_id_of_a_slow_store_has_more_time() {
        let (lateness, most) = (Lateness::new(Arc::default()), Duration::from_secs(2));
        assert_eq!(lateness.time_of_id(most), LEAST_TIME);
        let ago = |millis| Instant::now() - Duration::from_millis(millis);
        lateness.answered(ago(300), true);
        assert!(lateness.time_of_id(most) >= Duration::from_millis(1_200));
        (0..100).for_each(|_| lateness.answered(ago(1), true));
        assert_eq!(lateness.time_of_id(most), LEAST_TIME);
        lateness.answered(ago(1_000), true);
        assert_eq!(lateness.time_of_id(most), most);
    }

    #[test]
    fn only_an_answer_in_time_shows_that_a_part_answers() {
        let lateness = Lateness::new(Arc::default());
        let before = Instant::now();
        let start = before + Duration::from_millis(1);
        lateness.answered(start, false);
        assert!(!lateness.answers_in_part(before));
        lateness.answered(start, true);
        assert!(lateness.answers_in_part(before) && lateness.answers_in_part(start));
        assert!(!lateness.answers_in_part(start + Duration::from_millis(1)));
    }
}
