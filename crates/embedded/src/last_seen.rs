//! The store's clock: the last time seen, which the file keeps, plus the monotonic clock since
//! then. It detects jumps of the wall clock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, WriteTransaction};

use crate::error::Fault;
use crate::schema::tables::{LAST_SEEN, META};
use polynym_directory::{Now, Timestamp};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How far ahead the wall clock may be when a store is opened, which may have been closed for a
/// while.
const MAX_CLOSED: Duration = DAY;
/// The time for which a wall clock that has jumped ahead must run steadily before it is trusted.
const TRUSTED_AFTER: Duration = DAY;
/// The interval at which an agreeing wall clock becomes the new base, so that small steps do not
/// add up.
const REBASE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The interval between writes of the last time seen.
const WRITE_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// The last time seen by an open store.
#[derive(Debug)]
pub struct LastSeen(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The base of the time. None until the store has seen a time.
    base: Option<Base>,
    /// Since when the wall clock has been ahead by about this much.
    ahead: Option<(Instant, Duration)>,
    /// Whether the wall clock agreed at the last reading.
    agrees: bool,
    /// The time when the time was last written, by the monotonic clock.
    written: Option<Instant>,
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
    /// The clock of a store that is opened at `now` and whose file has this time.
    pub fn new(stored: Option<Timestamp>, now: Instant) -> Self {
        let base = stored.map(|time| Base { time, at: now, slack: MAX_CLOSED });
        Self(Mutex::new(State { base, ahead: None, agrees: false, written: None }))
    }

    /// The time at `now`, given the wall clock's reading, and whether it must be written.
    pub fn look(&self, wall: Timestamp, now: Instant) -> (Timestamp, bool) {
        let mut state = self.state();
        state.agrees = state.trusts(wall, now);
        let rebases = state
            .base
            .is_none_or(|base| base.slack != Now::TOLERANCE || now >= base.at + REBASE_INTERVAL);
        if state.agrees && rebases {
            state.base = Some(Base { time: wall, at: now, slack: Now::TOLERANCE });
        }

        let is_recent = state.written.is_some_and(|written| now < written + WRITE_INTERVAL);
        let must_write = state.agrees && !is_recent;
        if must_write {
            state.written = Some(now);
        }
        (state.base.map_or(wall, |base| base.time(now)), must_write)
    }

    /// The time to write. None while the wall clock does not agree.
    pub fn to_write(&self, now: Instant) -> Option<Timestamp> {
        let state = self.state();
        state.base.filter(|_| state.agrees).map(|base| base.time(now))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the wall clock agrees with the store's, or has been ahead steadily for long enough.
    fn trusts(&mut self, wall: Timestamp, now: Instant) -> bool {
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
        ahead > 0 && now.saturating_duration_since(steady.0) >= TRUSTED_AFTER
    }
}

/// Reads the last time seen from a store's file.
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
    fn a_new_store_accepts_the_wall_clock() {
        let (seen, start) = (LastSeen::new(None, Instant::now()), Instant::now());
        assert_eq!(seen.to_write(start), None);
        assert_eq!(seen.look(SEEN, start), (SEEN, true));
        assert_eq!(seen.to_write(start + HOUR), Some(SEEN.plus(HOUR)));
    }

    #[test]
    fn a_jump_is_detected_until_the_clock_is_right_again() {
        let start = Instant::now();
        for wall in [
            before(30 * DAY),
            before(Duration::from_secs(61)),
            SEEN.plus(HOUR),
            SEEN.plus(30 * DAY),
        ] {
            let seen = LastSeen::new(None, start);
            assert!(agrees(&seen, SEEN, start));
            assert!(!agrees(&seen, wall, start) && seen.to_write(start).is_none(), "{wall:?}");
            assert!(agrees(&seen, SEEN.plus(HOUR), start + HOUR), "{wall:?}");
        }
    }

    #[test]
    fn a_store_that_was_closed_for_hours_accepts_the_wall_clock() {
        let start = Instant::now();
        let seen = LastSeen::new(Some(SEEN), start);
        assert!(agrees(&seen, SEEN.plus(23 * HOUR), start));
        assert!(!agrees(&seen, SEEN, start), "it runs from there on");
    }

    #[test]
    fn a_clock_behind_the_last_time_seen_is_never_trusted() {
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
    fn a_clock_far_ahead_is_trusted_after_a_steady_day() {
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
    fn the_time_is_written_at_intervals() {
        let start = Instant::now();
        let seen = LastSeen::new(None, start);
        let written = (0..60 * 60).filter(|n| {
            let elapsed = Duration::from_secs(*n);
            seen.look(SEEN.plus(elapsed), start + elapsed).1
        });
        assert_eq!(written.count(), 6);
    }
}
