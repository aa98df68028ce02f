//! One caller's loop: a call, its time, the next call.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::sync::oneshot::Receiver;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::work::{Verdict, Work};
use crate::failure::Failure;
use crate::output::printable;
use crate::report::one_line;

/// The delay of a caller after an error, so that an unreachable server is not flooded.
const ERROR_DELAY: Duration = Duration::from_millis(1);

/// The time in which calls count.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The end of the warm-up: earlier answers do not count.
    pub start: Instant,
    /// The time of the last call.
    pub end: Instant,
    /// The time after the end for the last answers.
    pub grace: Duration,
}

/// The outcomes of the calls of one caller, or of all.
#[derive(Debug)]
pub struct Tally {
    /// The latencies, in nanoseconds, of the calls with a correct answer within the window.
    pub latencies: Histogram<u64>,
    /// Failed calls or items of batches, including those of the warm-up.
    pub errors: u64,
    /// Answers that differ from the loaded users, including those of the warm-up.
    pub wrong: u64,
    first_error: Option<String>,
}

impl Default for Tally {
    fn default() -> Self {
        let latencies = Histogram::new(3).unwrap_or_else(|_| unreachable!("3 is between 0 and 5"));
        Self { latencies, errors: 0, wrong: 0, first_error: None }
    }
}

impl Tally {
    /// The histogram grows up to 64 bits of nanoseconds: no time is out of range.
    fn record(&mut self, time: Duration) {
        let _ = self.latencies.record(time.as_nanos() as u64);
    }

    pub fn add(&mut self, other: Tally) {
        self.latencies += other.latencies;
        self.errors += other.errors;
        self.wrong += other.wrong;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    pub fn fail(&mut self, message: &str) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| message.to_owned());
    }

    /// Fails if an answer was wrong, a call failed, or no call succeeded.
    pub fn verdict(&self) -> Result<(), Failure> {
        let failed = |message: String| Err(Failure::Other(message));
        if let Some(error) = &self.first_error {
            eprintln!("{} errors, the first: {}", self.errors, printable(error));
        }

        match (self.wrong, self.errors, self.latencies.len()) {
            (0, _, 0) => failed("no call succeeded".to_owned()),
            (0, 0, _) => Ok(()),
            (0, errors, _) => failed(format!("{errors} calls failed")),
            (wrong, ..) => failed(format!(
                "{wrong} answers were wrong: the users differ from those that `polynym bench` loads"
            )),
        }
    }
}

/// Makes one call after the other until the window ends or `stop` is dropped, then cleans up.
pub async fn call(mut work: impl Work, window: Window, stop: Receiver<()>) -> Tally {
    let mut tally = Tally::default();
    let grace = window.end + window.grace;
    tokio::select! {
        biased;
        () = repeat(&mut work, window, &mut tally) => {}
        _ = stop => return tally,
        () = sleep_until(grace) => tally.fail("a call was not answered in time"),
    }
    // A failed clean-up does not fail the measurement.
    let _ = timeout_at(grace, work.finish()).await;
    tally
}

async fn repeat(work: &mut impl Work, window: Window, tally: &mut Tally) {
    let mut before = Instant::now();
    while before < window.end {
        let outcome = work.call().await;
        let now = Instant::now();
        match outcome {
            Ok(Verdict::CORRECT) if now < window.start || now >= window.end => {}
            Ok(Verdict::CORRECT) => tally.record(now - before),
            Ok(Verdict { wrong, errors }) => {
                tally.wrong += wrong;
                tally.errors += errors;
            }
            Err(status) => {
                tally.fail(&one_line(&status));
                tokio::time::sleep(ERROR_DELAY).await;
            }
        }
        before = now;
    }
}
