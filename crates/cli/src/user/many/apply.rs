//! Makes the changes, several at once, until all are made, Ctrl-C stops them, or the server refuses
//! them all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal;

use super::action::Action;
use super::left::Left;
use super::targets::{Target, Targets, is_denied};
use crate::client::{Session, request_id};
use crate::failure::Failure;
use polynym_client::{Error, Kind};

/// The number of calls in flight.
const CONCURRENCY: usize = 16;
/// The first delay before a call is repeated, and the longest.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// The time after which a call that the server cannot take is given up.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
const BAR: &str = "{bar:30} {percent}%  {pos} users, {per_sec}  {eta} left";

/// The result of the operation, in numbers of users.
#[derive(Default)]
pub struct Outcome {
    pub changed: usize,
    /// The users that were as the action leaves them.
    pub unchanged: usize,
    /// The users that the filter matches and the action does not apply to.
    pub skipped: usize,
    pub failed: usize,
    /// The users that were not reached.
    pub remaining: usize,
    /// The failures by reason.
    pub reasons: BTreeMap<String, usize>,
    /// The file of the users that are left.
    pub left: Option<PathBuf>,
    /// The failure that ended the operation early.
    pub end: Option<Failure>,
}

/// The result of one call.
enum CallOutcome {
    Done,
    Failed(Error),
    /// The operation was stopped before the call.
    NotReached,
}

/// Changes the users.
pub async fn apply(
    session: &Session,
    action: &Action,
    targets: Targets,
    mut left: Left,
) -> Result<Outcome, Failure> {
    let Targets { eligible, unchanged, skipped, refused } = targets;
    let mut outcome = Outcome { unchanged, skipped, ..Outcome::default() };
    for (user, reason) in &refused {
        outcome.fail(&mut left, user, reason, reason)?;
    }
    let is_stopped = AtomicBool::new(false);
    let bar = bar(eligible.len());
    let change_unless_stopped = async |target: Target| {
        if is_stopped.load(Ordering::Relaxed) {
            return (target, CallOutcome::NotReached);
        }
        let outcome = match change(session, action, &target, &is_stopped).await {
            Ok(()) => CallOutcome::Done,
            Err(status) => CallOutcome::Failed(status),
        };
        (target, outcome)
    };
    let calls = stream::iter(eligible).map(change_unless_stopped).buffer_unordered(CONCURRENCY);
    let mut calls = std::pin::pin!(calls);
    loop {
        let next = tokio::select! {
            next = calls.next() => next,
            _ = signal::ctrl_c(), if outcome.end.is_none() => {
                is_stopped.store(true, Ordering::Relaxed);
                outcome.end = Some(Failure::Interrupted);
                continue;
            }
        };
        let Some((target, result)) = next else { break };
        bar.inc(1);
        if let Some(failure) = outcome.record(session, &mut left, &target, result)? {
            is_stopped.store(true, Ordering::Relaxed);
            outcome.end.get_or_insert(failure);
        }
    }
    bar.finish_and_clear();
    outcome.left = left.finish()?;
    Ok(outcome)
}

impl Outcome {
    /// Records the result of a call. Returns the failure if it ends the operation.
    fn record(
        &mut self,
        session: &Session,
        left: &mut Left,
        target: &Target,
        result: CallOutcome,
    ) -> Result<Option<Failure>, Failure> {
        match result {
            CallOutcome::Done => self.changed += 1,
            CallOutcome::NotReached => {
                self.remaining += 1;
                left.add(&target.text, "")?;
            }
            CallOutcome::Failed(error) if is_denied(&error) || is_transient(&error) => {
                self.remaining += 1;
                left.add(&target.text, error.message())?;
                return Ok(Some(session.failure(error)));
            }
            CallOutcome::Failed(error) => {
                self.fail(left, &target.text, &reason(&error), error.message())?;
            }
        }
        Ok(None)
    }

    fn fail(
        &mut self,
        left: &mut Left,
        user: &str,
        reason: &str,
        message: &str,
    ) -> Result<(), Failure> {
        self.failed += 1;
        *self.reasons.entry(reason.to_owned()).or_default() += 1;
        left.add(user, message)
    }
}

/// Changes a user. Repeats the call while the server cannot take it.
async fn change(
    session: &Session,
    action: &Action,
    target: &Target,
    is_stopped: &AtomicBool,
) -> Result<(), Error> {
    let (request_id, began, mut delay) = (request_id(None), Instant::now(), RETRY_DELAYS[0]);
    loop {
        let error = match action.call(session, target, &request_id).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let gives_up = began.elapsed() > RETRY_TIMEOUT || is_stopped.load(Ordering::Relaxed);
        if !is_transient(&error) || gives_up {
            return Err(error);
        }
        tokio::time::sleep(error.retry_after().unwrap_or(delay).min(RETRY_DELAYS[1])).await;
        delay = (delay * 2).min(RETRY_DELAYS[1]);
    }
}

/// Whether a call may succeed later: the request id makes that safe.
fn is_transient(error: &Error) -> bool {
    match error.kind() {
        Kind::Unavailable | Kind::OutcomeUnknown | Kind::DeadlineExceeded => true,
        Kind::ResourceExhausted => error.retry_after().is_some(),
        _ => false,
    }
}

/// The reason of a failure, for a tally.
fn reason(error: &Error) -> String {
    match error.reason() {
        "" => format!("{:?}", error.code()),
        reason => reason.to_owned(),
    }
}

/// A progress bar; hidden unless standard error is a terminal.
fn bar(users: usize) -> ProgressBar {
    let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(users as u64).with_style(style)
}
