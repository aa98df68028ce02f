package polynym

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
)

// lost reports whether the attempt may have changed something: its request has left, and the server
// has not said what became of it.
func (e *Error) lost() bool {
	if !e.fromServer {
		return e.sent && !e.refused
	}
	switch e.Reason {
	case ReasonDeadline, ReasonOutcomeUnknown, ReasonAnswersUnread:
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
	case e.Reason == ReasonOutcomeUnknown:
		return m.changes
	case e.Code == codes.ResourceExhausted:
		return e.RetryAfter > 0
	default:
		return e.Code == codes.Unavailable
	}
}

// retries are the rules by which the calls of a client are attempted again.
type retries struct {
	maxAttempts int
	waits       bool // Calls wait for a connection.
	backoff     backoff
	budget      budget
	closed      chan struct{} // Closed with the client.
}

// plan is what the rules are for the call of a context, if they differ from those of the client.
type plan struct {
	made int  // The number of attempts that were made before. The call adds its own.
	once bool // The call has a single attempt.
}

type planKey struct{}

func withPlan(ctx context.Context, p *plan) context.Context {
	return context.WithValue(ctx, planKey{}, p)
}

// run calls until an attempt succeeds, or no further attempt is allowed. An attempt that the server
// has never seen counts as none.
func (r *retries) run(ctx context.Context, m method, call func(number int) *Error) error {
	p, _ := ctx.Value(planKey{}).(*plan)
	if p == nil {
		p = new(plan)
	}
	unknown, unseen := false, 0
	for {
		failure := call(p.made + 1)
		if failure == nil {
			p.made++
			r.budget.add(1)
			return nil
		}
		unknown = m.changes && (failure.lost() || unknown && !failure.settles())
		var again bool
		var wait time.Duration
		if failure.unreachable {
			unseen++
			again, wait = r.waits, r.backoff.delay(unseen)
		} else {
			p.made++
			again = r.allow(failure, m) && p.made < r.maxAttempts && !p.once &&
				(!unknown || m.idempotent)
			wait = delay(p.made, failure.RetryAfter)
		}
		if !again {
			return outcome(failure, unknown)
		}
		if !r.pause(ctx, wait) {
			return outcome(r.interrupted(ctx, failure), unknown)
		}
	}
}

// allow reports whether the kind of a failure and the budget allow another attempt. A final answer
// of the server counts as a success.
func (r *retries) allow(failure *Error, m method) bool {
	if !failure.retryable(m) {
		if failure.fromServer {
			r.budget.add(1)
		}
		return false
	}
	if failure.RetryAfter == 0 && !failure.counted {
		r.budget.add(-10)
	}
	return !r.budget.spent()
}

// pause waits. It reports false, at once if possible, if the call ends before.
func (r *retries) pause(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-r.closed:
		return false
	}
}

// interrupted is the error of a call that ends between two attempts: the last failure, unless the
// call was cancelled or the client is closed.
func (r *retries) interrupted(ctx context.Context, last *Error) *Error {
	var ended *Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		ended = localError(codes.Canceled, transportTexts[codes.Canceled])
	case r.isClosed():
		ended = closedError(false)
	default:
		return last
	}
	ended.RequestID = last.RequestID
	return ended
}

func (r *retries) isClosed() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
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

// budget limits the retries of a client, so that they do not multiply the calls of an outage. It
// counts what failures have taken, in tenths: a failure takes 10 of 100, an answer gives back 1,
// and there are no retries from half of them on.
type budget struct{ taken atomic.Int32 }

func (b *budget) add(tenths int32) {
	for {
		taken := b.taken.Load()
		changed := min(max(taken-tenths, 0), 100)
		if taken == changed || b.taken.CompareAndSwap(taken, changed) {
			return
		}
	}
}

func (b *budget) spent() bool { return b.taken.Load() >= 50 }

// backoff are the times between attempts to reach a server: each is twice as long as the one
// before, up to the longest.
type backoff struct{ first, longest time.Duration }

func (b backoff) delay(failures int) time.Duration {
	wait := b.first
	for i := 1; i < failures && wait < b.longest; i++ {
		wait *= 2
	}
	wait = min(wait, b.longest)
	return wait*4/5 + rand.N(wait*2/5+1)
}

// delay returns the time between an attempt and the next one.
func delay(number int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter + rand.N(retryAfter/5+1)
	}
	return rand.N(100 * time.Millisecond << min(number, 10))
}

// sleep waits, and reports false if the context ends before.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
