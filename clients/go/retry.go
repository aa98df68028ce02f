package polynym

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
)

// Reasons of the server that the rules of retries name.
const (
	reasonDeadline       = "DEADLINE"
	reasonOutcomeUnknown = "OUTCOME_UNKNOWN"
	reasonAnswersUnread  = "ANSWERS_UNREAD"
	reasonAnswerTooLarge = "ANSWER_TOO_LARGE"
	reasonUserTooLarge   = "USER_TOO_LARGE"
	reasonBatchTooLarge  = "BATCH_TOO_LARGE"
)

// lost reports whether the attempt may have changed something: its request has left, and the server
// has not said what became of it.
func (e *Error) lost() bool {
	if !e.fromServer {
		return e.sent
	}
	switch e.Reason {
	case reasonDeadline, reasonOutcomeUnknown, reasonAnswersUnread:
		return true
	}
	return false
}

// settles reports whether the answer also settles earlier attempts with the same request id that
// were lost: the server has looked at the request, not only refused the call.
func (e *Error) settles() bool {
	switch e.Code {
	case codes.Unavailable, codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied:
		return false
	}
	return e.fromServer && !e.lost()
}

// retryable reports whether another attempt may succeed.
func (e *Error) retryable(m method) bool {
	switch {
	case e.Reason == reasonOutcomeUnknown:
		return m.changes
	case e.Code == codes.ResourceExhausted:
		return e.RetryAfter > 0
	default:
		return e.Code == codes.Unavailable
	}
}

// attempt calls until an attempt succeeds, or no further attempt is allowed. With an earlier failure
// of the same call, that one counts as the first attempt.
func attempt(
	ctx context.Context, m method, maxAttempts int, earlier *Error, call func() *Error,
) error {
	failure := earlier
	unknown := false
	for number := 1; ; number++ {
		if failure == nil {
			if failure = call(); failure == nil {
				return nil
			}
		}
		unknown = m.changes && (failure.lost() || unknown && !failure.settles())
		if number >= maxAttempts || ctx.Err() != nil || !failure.retryable(m) ||
			unknown && !m.idempotent || !pause(ctx, delay(number, failure.RetryAfter)) {
			return outcome(failure, unknown)
		}
		failure = nil
	}
}

// outcome is the error of a call whose last attempt has failed.
func outcome(last *Error, unknown bool) error {
	if !unknown {
		return last
	}
	last.unknown = true
	return &OutcomeUnknownError{RequestID: last.RequestID, last: last}
}

// delay returns the time between an attempt and the next one.
func delay(number int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter + rand.N(retryAfter/5+1)
	}
	return rand.N(100 * time.Millisecond << min(number, 10))
}

// pause waits. It reports false, at once if possible, if the call ends before.
func pause(ctx context.Context, delay time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= delay {
		return false
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
