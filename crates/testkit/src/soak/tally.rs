//! Counts of the calls of a soak, and the wrong answers among them.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use polynym_client::{Error, Kind};

/// The time after a blow in which calls may still fail, until a dead server is found and its
/// sessions have ended.
pub const RECOVERY: Duration = Duration::from_secs(20);
/// The wrong answers that are kept.
const KEPT: usize = 20;

/// The counts of all callers.
#[derive(Default)]
pub struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    latencies_us: Vec<u32>,
    calls: Calls,
    total: Calls,
    failures: Vec<(Instant, String)>,
    outages: Vec<(Instant, Instant)>,
    wrong: Vec<String>,
}

/// Calls in a time.
#[derive(Clone, Copy, Default)]
pub struct Calls {
    pub look_ups: u64,
    pub changes: u64,
    pub events: u64,
    /// Calls that failed after all attempts of the client.
    pub failures: u64,
    /// The percentiles of single look-ups; 0 without any.
    pub p50_us: u32,
    pub p99_us: u32,
}

/// Whether a call may succeed later: nothing is wrong but the time.
pub fn is_transient(error: &Error) -> bool {
    matches!(
        error.kind(),
        Kind::Unavailable | Kind::OutcomeUnknown | Kind::DeadlineExceeded | Kind::ResourceExhausted
    )
}

impl Tally {
    /// Forgets what came before the soak.
    pub fn start(&self) {
        let mut counts = self.counts.lock().unwrap();
        *counts = Counts { wrong: std::mem::take(&mut counts.wrong), ..Counts::default() };
    }

    pub fn looked_up(&self, time: Option<Duration>) {
        let mut counts = self.counts.lock().unwrap();
        counts.calls.look_ups += 1;
        counts.latencies_us.extend(time.map(|time| time.as_micros() as u32));
    }

    pub fn changed(&self) {
        self.counts.lock().unwrap().calls.changes += 1;
    }

    pub fn saw_event(&self) {
        self.counts.lock().unwrap().calls.events += 1;
    }

    /// Counts a failure. One that time does not heal is wrong.
    pub fn failed(&self, what: &str, error: &Error) {
        if !is_transient(error) {
            self.wrong(format!("{what}: {error} ({})", error.reason()));
            return;
        }
        let mut counts = self.counts.lock().unwrap();
        counts.calls.failures += 1;
        counts.failures.push((Instant::now(), format!("{what}: {error} ({})", error.reason())));
    }

    pub fn wrong(&self, what: String) {
        let mut counts = self.counts.lock().unwrap();
        if counts.wrong.len() < KEPT {
            counts.wrong.push(what);
        }
    }

    /// Something was down between these times.
    pub fn was_down(&self, from: Instant, until: Instant) {
        self.counts.lock().unwrap().outages.push((from, until));
    }

    /// Returns the calls since the last time.
    pub fn take(&self) -> Calls {
        let mut counts = self.counts.lock().unwrap();
        let mut latencies = std::mem::take(&mut counts.latencies_us);
        latencies.sort_unstable();
        let percentile = |share: usize| latencies.get(latencies.len() * share / 100).copied();
        let calls = Calls {
            p50_us: percentile(50).unwrap_or_default(),
            p99_us: percentile(99).unwrap_or_default(),
            ..std::mem::take(&mut counts.calls)
        };
        counts.total.look_ups += calls.look_ups;
        counts.total.changes += calls.changes;
        counts.total.events += calls.events;
        counts.total.failures += calls.failures;
        calls
    }

    /// Returns all calls that [`Tally::take`] has returned.
    pub fn total(&self) -> Calls {
        self.counts.lock().unwrap().total
    }

    /// Returns what is wrong: answers, and failures while nothing was down.
    pub fn faults(&self) -> Vec<String> {
        let counts = self.counts.lock().unwrap();
        let is_excused = |at: &Instant| {
            counts.outages.iter().any(|(from, until)| from <= at && *at <= *until + RECOVERY)
        };
        let unexcused = counts.failures.iter().filter(|(at, _)| !is_excused(at));
        let failures = unexcused.map(|(_, what)| format!("nothing was down: {what}"));
        counts.wrong.iter().cloned().chain(failures.take(KEPT)).collect()
    }
}
