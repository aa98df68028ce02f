//! The clock of a store in a folder: the latest time seen, which its file keeps, and the monotonic
//! clock since. It distinguishes a wall clock that jumps from one that runs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, WriteTransaction};

use super::error::Fault;
use super::schema::{LAST_SEEN, META};
use crate::directory::clock::Now;
use crate::directory::model::timestamp::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest that a store can have been closed before the time at its opening is in doubt.
const CLOSED: Duration = DAY;
/// The time for which a clock that has jumped ahead must run steadily until it is believed.
const STEADY: Duration = DAY;
/// The time after which the wall clock is taken over anew where it agrees: small steps do not add
/// up.
const RENEW: Duration = Duration::from_secs(60 * 60);
/// The time from one write of the last time seen to the next.
const KEEP: Duration = Duration::from_secs(10 * 60);

/// The last time seen by an open store.
#[derive(Debug)]
pub struct LastSeen(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The base of the time; none in a store that was never given a time.
    base: Option<Base>,
    /// Since when the wall clock has been ahead, and by how much, while that stays about the same.
    ahead: Option<(Instant, Duration)>,
    /// Whether the wall clock agreed when it was last looked at.
    agrees: bool,
    /// When the time was last written, by the monotonic clock.
    kept: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Base {
    time: Timestamp,
    at: Instant,
    /// By how much the wall clock may be ahead.
    slack: Duration,
}

impl Base {
    fn time(&self, now: Instant) -> Timestamp {
        self.time.plus(now.saturating_duration_since(self.at))
    }
}

impl LastSeen {
    /// The state of a store that is opened at `now`, with the time that its file has.
    pub fn new(kept: Option<Timestamp>, now: Instant) -> Self {
        let base = kept.map(|time| Base { time, at: now, slack: CLOSED });
        Self(Mutex::new(State { base, ahead: None, agrees: false, kept: None }))
    }

    /// The time at `now`, given the wall clock's reading; and whether it is to be written.
    pub fn look(&self, wall: Timestamp, now: Instant) -> (Timestamp, bool) {
        let mut state = self.state();
        state.agrees = state.believes(wall, now);
        let renews =
            state.base.is_none_or(|base| base.slack != Now::TOLERANCE || now >= base.at + RENEW);
        if state.agrees && renews {
            state.base = Some(Base { time: wall, at: now, slack: Now::TOLERANCE });
        }

        let is_kept = state.kept.is_some_and(|kept| now < kept + KEEP);
        if state.agrees && !is_kept {
            state.kept = Some(now);
        }
        (state.base.map_or(wall, |base| base.time(now)), state.agrees && !is_kept)
    }

    /// The time to write; none while the wall clock does not agree.
    pub fn to_keep(&self, now: Instant) -> Option<Timestamp> {
        let state = self.state();
        state.base.filter(|_| state.agrees).map(|base| base.time(now))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the wall clock agrees with what is known, or is ahead and has run steadily for long
    /// enough.
    fn believes(&mut self, wall: Timestamp, now: Instant) -> bool {
        let Some(base) = self.base else { return true };
        let ahead = wall.millis_after(base.time(now));
        let apart = Duration::from_millis(ahead.unsigned_abs());
        if apart <= if ahead < 0 { Now::TOLERANCE } else { base.slack } {
            self.ahead = None;
            return true;
        }

        let is_same = |(_, before): &(Instant, Duration)| before.abs_diff(apart) <= Now::TOLERANCE;
        let steady = self.ahead.filter(is_same).unwrap_or((now, apart));
        self.ahead = (ahead > 0).then_some(steady);
        ahead > 0 && now.saturating_duration_since(steady.0) >= STEADY
    }
}

/// The last time seen that a store's file has.
pub fn read(database: &Database) -> Result<Option<Timestamp>, Fault> {
    let meta = database.begin_read()?.open_table(META)?;
    Ok(meta.get(LAST_SEEN)?.map(|millis| Timestamp::from_millis(millis.value() as i64)))
}

/// Writes the last time seen.
pub fn write(transaction: &WriteTransaction, time: Timestamp) -> Result<(), Fault> {
    transaction.open_table(META)?.insert(LAST_SEEN, time.as_millis().max(0) as u64)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn before(time: Duration) -> Timestamp {
        Timestamp::from_millis(SEEN.as_millis() - time.as_millis() as i64)
    }

    /// Whether the wall clock agrees with the store's clock.
    fn agrees(seen: &LastSeen, wall: Timestamp, now: Instant) -> bool {
        !Now::compare(wall, Some(seen.look(wall, now).0)).clock_uncertain
    }

    #[test]
    fn a_new_store_learns_the_time_from_the_wall_clock() {
        let (seen, start) = (LastSeen::new(None, Instant::now()), Instant::now());
        assert_eq!(seen.to_keep(start), None);
        assert_eq!(seen.look(SEEN, start), (SEEN, true));
        assert_eq!(seen.to_keep(start + HOUR), Some(SEEN.plus(HOUR)));
    }

    #[test]
    fn a_jump_is_noticed_and_heals() {
        let start = Instant::now();
        for wall in [
            before(30 * DAY),
            before(Duration::from_secs(61)),
            SEEN.plus(HOUR),
            SEEN.plus(30 * DAY),
        ] {
            let seen = LastSeen::new(None, start);
            assert!(agrees(&seen, SEEN, start));
            assert!(!agrees(&seen, wall, start) && seen.to_keep(start).is_none(), "{wall:?}");
            assert!(agrees(&seen, SEEN.plus(HOUR), start + HOUR), "{wall:?}");
        }
    }

    #[test]
    fn a_store_that_was_closed_for_hours_takes_the_time_as_it_is() {
        let start = Instant::now();
        let seen = LastSeen::new(Some(SEEN), start);
        assert!(agrees(&seen, SEEN.plus(23 * HOUR), start));
        assert!(!agrees(&seen, SEEN, start), "it runs from there on");
    }

    #[test]
    fn a_clock_behind_the_last_time_seen_is_never_believed() {
        let start = Instant::now();
        let seen = LastSeen::new(Some(SEEN), start);
        for hours in 0..100 {
            assert!(
                !agrees(&seen, before(300 * HOUR).plus(hours * HOUR), start + hours * HOUR),
                "{hours}"
            );
        }
        assert!(agrees(&seen, SEEN.plus(101 * HOUR), start + 100 * HOUR), "once it is put right");
    }

    #[test]
    fn a_clock_far_ahead_is_believed_after_a_steady_day() {
        let start = Instant::now();
        let ahead = 30 * DAY;
        let seen = LastSeen::new(Some(SEEN), start);
        for hours in 0..24 {
            let elapsed = hours * HOUR;
            assert!(!agrees(&seen, SEEN.plus(ahead + elapsed), start + elapsed), "{hours}");
        }
        assert!(
            !agrees(&seen, SEEN.plus(ahead + 25 * HOUR), start + 24 * HOUR),
            "it jumped once more"
        );
        assert!(!agrees(&seen, SEEN.plus(ahead + 48 * HOUR), start + 47 * HOUR));
        assert!(agrees(&seen, SEEN.plus(ahead + 49 * HOUR), start + 48 * HOUR));
    }

    #[test]
    fn small_steps_do_not_add_up() {
        let start = Instant::now();
        let seen = LastSeen::new(None, start);
        for day in 0..100 {
            let wall = SEEN.plus(day * (DAY + Duration::from_secs(50)));
            assert!(agrees(&seen, wall, start + day * DAY), "{day}");
        }
    }

    #[test]
    fn the_time_is_written_now_and_then() {
        let start = Instant::now();
        let seen = LastSeen::new(None, start);
        let written = (0..60 * 60).filter(|n| {
            let elapsed = Duration::from_secs(*n);
            seen.look(SEEN.plus(elapsed), start + elapsed).1
        });
        assert_eq!(written.count(), 6);
    }
}
