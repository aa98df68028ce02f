//! When a failed call is sent again, and whether its outcome is known.

use std::time::Duration;

use tonic::Code;

use crate::error::Error;
use crate::method::Method;
use crate::reasons::{ANSWERS_UNREAD, OUTCOME_UNKNOWN};

pub mod backoff;
pub mod budget;

use backoff::Backoff;
use budget::Budget;

/// The maximum delay before the second attempt. It doubles before each further one.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The time before its deadline in which a call no longer waits for a server.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);
/// The maximum share of the server's delay that is added to it.
const JITTER: f64 = 0.2;

/// The rules for the attempts of a client's calls.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The highest number of attempts that reach the server.
    pub max: u32,
    /// The budget of the client, which retries reduce.
    pub budget: &'a Budget,
    /// The delays of attempts that the server did not see.
    pub backoff: Backoff,
    /// Whether such attempts are made until the deadline.
    pub wait_for_ready: bool,
}

/// The attempts of one call.
pub struct Attempts<'a> {
    method: &'a Method,
    rules: Rules<'a>,
    made: u32,
    /// The attempts in a row that the server did not see.
    unsent: u32,
    /// Whether an attempt may have changed something, and no later answer has said whether.
    is_unsettled: bool,
}

impl<'a> Attempts<'a> {
    /// The attempts after so many that were made.
    pub fn new(method: &'a Method, rules: Rules<'a>, made: u32) -> Self {
        Self { method, rules, made, unsent: 0, is_unsettled: false }
    }

    /// The number of the next attempt, of those that reach the server.
    pub fn number(&self) -> u32 {
        self.made + 1
    }

    /// The delay before the next attempt; none if this error is that of the call.
    pub fn after(&mut self, error: &Error, left: Duration) -> Option<Duration> {
        if error.is_never_sent() {
            let delay = self.after_unsent().filter(|_| left >= LEAST_PATIENCE);
            return delay.map(|delay| delay.min(left / 2));
        }
        self.after_sent(error).filter(|delay| *delay < left)
    }

    /// An attempt that the server did not see counts as none. The first is repeated at once, since
    /// most of them meet a connection that has just ended. A wait takes at most half of the time
    /// that is left, so that a server that is back by the deadline is found.
    fn after_unsent(&mut self) -> Option<Duration> {
        self.unsent += 1;
        match self.unsent {
            1 => Some(Duration::ZERO),
            unsent => self.rules.wait_for_ready.then(|| self.rules.backoff.delay(unsent - 1)),
        }
    }

    fn after_sent(&mut self, error: &Error) -> Option<Duration> {
        self.unsent = 0;
        self.made += 1;
        if !self.method.only_reads {
            self.is_unsettled = is_lost(error) || self.is_unsettled && !settles(error);
        }
        let may_repeat = !self.is_unsettled || self.method.has_request_id;
        let is_repeated = self.made < self.rules.max
            && may_repeat
            && error.is_retryable()
            && self.rules.budget.allows();
        is_repeated.then(|| delay(error, self.made))
    }

    /// The error of the call.
    pub fn conclude(&self, error: Error, request_id: Option<String>) -> Error {
        let error = error.of_request(request_id);
        if self.is_unsettled { error.outcome_unknown() } else { error }
    }
}

/// The delay after the error of the last of several attempts.
pub fn delay(error: &Error, made: u32) -> Duration {
    match error.retry_after() {
        Some(delay) => delay.mul_f64(1.0 + JITTER * fastrand::f64()),
        None => (FIRST_DELAY * (1 << (made - 1).min(6))).mul_f64(fastrand::f64()),
    }
}

/// Whether the failed attempt may have changed something: all that the server does not deny.
fn is_lost(error: &Error) -> bool {
    match error.reason() {
        "" => !error.is_never_sent() && !error.is_of_proxy(),
        reason => {
            error.code() == Code::DeadlineExceeded
                || [OUTCOME_UNKNOWN, ANSWERS_UNREAD].contains(&reason)
        }
    }
}

/// Whether the answer settles the outcome of earlier attempts. A refusal does not, nor does what
/// the server did not say.
fn settles(error: &Error) -> bool {
    let is_refusal = matches!(
        error.code(),
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::Unauthenticated
            | Code::PermissionDenied
    );
    !error.reason().is_empty() && !is_lost(error) && !is_refusal
}

#[cfg(test)]
mod tests {
    use tonic::Status;
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;
    use crate::error::Kind;

    const CHANGE: Method = Method { path: "/change", only_reads: false, has_request_id: true };
    const SECOND: Duration = Duration::from_secs(1);

    /// The attempts of a method, at most `max`.
    fn attempts<'a>(method: &'a Method, max: u32, budget: &'a Budget) -> Attempts<'a> {
        let backoff = Backoff::default();
        Attempts::new(method, Rules { max, budget, backoff, wait_for_ready: true }, 0)
    }

    fn unsent() -> Error {
        Error::unreachable(std::sync::Arc::new(std::fmt::Error), &"away".into())
    }

    fn lost() -> Error {
        Status::unknown("transport error").into()
    }

    fn answered(code: Code, reason: &str) -> Error {
        let details = ErrorDetails::with_error_info(reason, "polynym", []);
        Status::with_error_details(code, "", details).into()
    }

    #[test]
    fn a_lost_change_is_repeated_three_times_and_its_outcome_unknown() {
        let budget = Budget::default();
        let mut attempts = attempts(&CHANGE, 3, &budget);
        assert!(attempts.after(&lost(), SECOND).is_some_and(|delay| delay <= FIRST_DELAY));
        assert!(attempts.after(&lost(), SECOND).is_some());
        assert_eq!(attempts.after(&lost(), SECOND), None);
        assert_eq!(attempts.conclude(lost(), None).kind(), Kind::OutcomeUnknown);
    }

    #[test]
    fn only_a_definite_answer_settles_a_lost_change() {
        for (answer, kind) in [
            (answered(Code::AlreadyExists, "IDENTITY_TAKEN"), Kind::AlreadyExists),
            (answered(Code::Unavailable, "STORE_UNAVAILABLE"), Kind::OutcomeUnknown),
            (answered(Code::ResourceExhausted, "RATE_LIMITED"), Kind::OutcomeUnknown),
            (answered(Code::Unauthenticated, "CREDENTIAL_INVALID"), Kind::OutcomeUnknown),
            (answered(Code::Unknown, "OUTCOME_UNKNOWN"), Kind::OutcomeUnknown),
            (answered(Code::DeadlineExceeded, "DEADLINE"), Kind::OutcomeUnknown),
            (Status::unimplemented("404 of a proxy").into(), Kind::OutcomeUnknown),
            (unsent(), Kind::OutcomeUnknown),
        ] {
            let budget = Budget::default();
            let mut attempts = attempts(&CHANGE, 2, &budget);
            assert!(attempts.after(&lost(), SECOND).is_some());
            // An attempt that no server saw is repeated.
            assert_eq!(attempts.after(&answer, SECOND).is_some(), answer.is_never_sent());
            assert_eq!(attempts.conclude(answer, None).kind(), kind);
        }
    }

    #[test]
    fn a_change_is_lost_unless_the_server_or_a_proxy_denies_it() {
        // As tonic does with an answer whose encoding it does not know.
        let mut unread = Status::unimplemented("Content is compressed");
        unread.metadata_mut().insert("grpc-accept-encoding", "identity".parse().unwrap());
        for (status, kind) in [
            (Status::out_of_range("an answer that is too large"), Kind::OutcomeUnknown),
            (Status::data_loss(""), Kind::OutcomeUnknown),
            (unread, Kind::OutcomeUnknown),
            (Status::unimplemented("404"), Kind::Unimplemented),
            (Status::unauthenticated("401"), Kind::Unauthenticated),
            (Status::permission_denied("403"), Kind::PermissionDenied),
        ] {
            let (budget, error) = (Budget::default(), Error::from(status));
            let mut attempts = attempts(&CHANGE, 1, &budget);
            assert_eq!(attempts.after(&error, SECOND), None);
            assert_eq!(attempts.conclude(error, None).kind(), kind);
        }
    }

    #[test]
    fn only_attempts_that_reach_the_server_have_numbers() {
        let budget = Budget::default();
        let mut attempts = attempts(&CHANGE, 3, &budget);
        attempts.after(&unsent(), SECOND);
        assert_eq!(attempts.number(), 1);
        attempts.after(&lost(), SECOND);
        assert_eq!(attempts.number(), 2);
    }

    #[test]
    fn a_refusal_alone_is_no_unknown_outcome() {
        for (code, reason) in
            [(Code::Unavailable, "RULES_CHANGING"), (Code::ResourceExhausted, "OVERLOADED")]
        {
            let budget = Budget::default();
            let mut attempts = attempts(&CHANGE, 1, &budget);
            let error = answered(code, reason);
            assert_eq!(attempts.after(&error, SECOND), None);
            assert_eq!(attempts.conclude(error, None).kind(), Kind::of(code));
        }
    }

    #[test]
    fn a_change_without_a_request_id_is_not_repeated_once_it_is_lost() {
        let method = Method { has_request_id: false, ..CHANGE };
        let budget = Budget::default();
        let mut attempts = attempts(&method, 3, &budget);
        assert!(attempts.after(&answered(Code::Unavailable, "RULES_CHANGING"), SECOND).is_some());
        assert_eq!(attempts.after(&lost(), SECOND), None);
    }

    #[test]
    fn the_delay_of_the_server_counts_if_the_deadline_allows() {
        let details = ErrorDetails::with_error_info("RATE_LIMITED", "polynym", []);
        let details = details.clone().set_retry_info(Some(SECOND)).clone();
        let status = Status::with_error_details(Code::ResourceExhausted, "", details);
        let error = Error::from(status);
        let budget = Budget::default();
        let delay = attempts(&CHANGE, 3, &budget).after(&error, 2 * SECOND);
        assert!(delay.is_some_and(|delay| (SECOND..=SECOND.mul_f64(1.2)).contains(&delay)));
        assert_eq!(attempts(&CHANGE, 3, &budget).after(&error, SECOND), None);
    }

    #[test]
    fn what_the_server_did_not_see_is_no_attempt_and_takes_no_token() {
        let budget = Budget::default();
        let mut attempts = attempts(&CHANGE, 1, &budget);
        assert_eq!(attempts.after(&unsent(), SECOND), Some(Duration::ZERO));
        for _ in 0..20 {
            assert!(attempts.after(&unsent(), 2 * SECOND).is_some_and(|delay| delay <= SECOND));
        }
        let last = attempts.after(&unsent(), SECOND / 10);
        assert!(last.is_some_and(|delay| delay <= SECOND / 20));
        assert_eq!(attempts.after(&unsent(), SECOND / 100), None);
        assert_eq!(attempts.conclude(unsent(), None).kind(), Kind::Unavailable);
        (0..100).for_each(|_| budget.note(Some(&unsent())));
        assert!(budget.allows());
    }

    #[test]
    fn no_call_is_repeated_once_most_have_failed() {
        let budget = Budget::default();
        let repeated = (0..20).filter(|_| {
            budget.note(Some(&lost()));
            attempts(&CHANGE, 3, &budget).after(&lost(), SECOND).is_some()
        });
        assert_eq!(repeated.count(), 4);
    }
}
