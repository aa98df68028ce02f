//! When a failed call is sent again, and whether its outcome is known.

use std::time::Duration;

use tonic::Code;

use crate::call::Method;
use crate::error::{Error, Kind};

/// The maximum delay before the second attempt. It doubles before each further one.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The maximum share of the server's delay that is added to it.
const JITTER: f64 = 0.2;

/// The attempts of one call.
pub struct Attempts<'a> {
    method: &'a Method,
    max: u32,
    made: u32,
    /// Whether an attempt may have changed something, and no later answer has said whether.
    is_unsettled: bool,
}

impl<'a> Attempts<'a> {
    /// At most `max` attempts.
    pub fn new(method: &'a Method, max: u32) -> Self {
        Self { method, max, made: 0, is_unsettled: false }
    }

    /// The delay before the next attempt; none if this error is that of the call.
    pub fn after(&mut self, error: &Error, left: Duration) -> Option<Duration> {
        self.made += 1;
        if !self.method.only_reads {
            self.is_unsettled = is_lost(error) || self.is_unsettled && !settles(error);
        }
        let may_repeat = !self.is_unsettled || self.method.has_request_id;
        if self.made >= self.max || !may_repeat || !self.is_retryable(error) {
            return None;
        }
        Some(self.delay(error.retry_after())).filter(|delay| *delay < left)
    }

    /// The error of the call.
    pub fn conclude(&self, error: Error, request_id: Option<String>) -> Error {
        let error = error.of_request(request_id);
        if self.is_unsettled { error.outcome_unknown() } else { error }
    }

    fn is_retryable(&self, error: &Error) -> bool {
        match error.kind() {
            Kind::Unavailable => true,
            Kind::ResourceExhausted => error.retry_after().is_some(),
            Kind::Unknown => error.reason() == OUTCOME_UNKNOWN,
            _ => false,
        }
    }

    fn delay(&self, retry_after: Option<Duration>) -> Duration {
        match retry_after {
            Some(delay) => delay.mul_f64(1.0 + JITTER * fastrand::f64()),
            None => (FIRST_DELAY * (1 << (self.made - 1).min(6))).mul_f64(fastrand::f64()),
        }
    }
}

const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";
const ANSWERS_UNREAD: &str = "ANSWERS_UNREAD";

/// Whether the failed attempt may have changed something.
fn is_lost(error: &Error) -> bool {
    error.is_lost_on_the_way() && !error.is_never_sent()
        || error.code() == Code::DeadlineExceeded
        || [OUTCOME_UNKNOWN, ANSWERS_UNREAD].contains(&error.reason())
}

/// Whether the answer settles the outcome of earlier attempts. A refusal does not.
fn settles(error: &Error) -> bool {
    let is_refusal = matches!(
        error.code(),
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::Unauthenticated
            | Code::PermissionDenied
    );
    !is_lost(error) && !is_refusal
}

#[cfg(test)]
mod tests {
    use tonic::Status;
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;

    const CHANGE: Method = Method { path: "/change", only_reads: false, has_request_id: true };
    const SECOND: Duration = Duration::from_secs(1);

    fn lost() -> Error {
        Status::unknown("transport error").into()
    }

    fn answered(code: Code, reason: &str) -> Error {
        let details = ErrorDetails::with_error_info(reason, "polynym", []);
        Status::with_error_details(code, "", details).into()
    }

    #[test]
    fn a_lost_change_is_repeated_three_times_and_its_outcome_unknown() {
        let mut attempts = Attempts::new(&CHANGE, 3);
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
        ] {
            let mut attempts = Attempts::new(&CHANGE, 2);
            assert!(attempts.after(&lost(), SECOND).is_some());
            assert_eq!(attempts.after(&answer, SECOND), None);
            assert_eq!(attempts.conclude(answer, None).kind(), kind);
        }
    }

    #[test]
    fn a_refusal_alone_is_no_unknown_outcome() {
        for (code, reason) in
            [(Code::Unavailable, "RULES_CHANGING"), (Code::ResourceExhausted, "OVERLOADED")]
        {
            let mut attempts = Attempts::new(&CHANGE, 1);
            let error = answered(code, reason);
            assert_eq!(attempts.after(&error, SECOND), None);
            assert_eq!(attempts.conclude(error, None).kind(), Kind::of(code));
        }
    }

    #[test]
    fn a_change_without_a_request_id_is_not_repeated_once_it_is_lost() {
        let method = Method { has_request_id: false, ..CHANGE };
        let mut attempts = Attempts::new(&method, 3);
        assert!(attempts.after(&answered(Code::Unavailable, "RULES_CHANGING"), SECOND).is_some());
        assert_eq!(attempts.after(&lost(), SECOND), None);
    }

    #[test]
    fn the_delay_of_the_server_counts_if_the_deadline_allows() {
        let details = ErrorDetails::with_error_info("RATE_LIMITED", "polynym", []);
        let details = details.clone().set_retry_info(Some(SECOND)).clone();
        let status = Status::with_error_details(Code::ResourceExhausted, "", details);
        let error = Error::from(status);
        let delay = Attempts::new(&CHANGE, 3).after(&error, 2 * SECOND);
        assert!(delay.is_some_and(|delay| (SECOND..=SECOND.mul_f64(1.2)).contains(&delay)));
        assert_eq!(Attempts::new(&CHANGE, 3).after(&error, SECOND), None);
    }
}
