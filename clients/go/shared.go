package polynym

import (
	"errors"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// outcomeKind says what becomes of a look-up after its batch.
type outcomeKind int

const (
	outcomeAnswer   outcomeKind = iota // It has a response.
	outcomeFailed                      // It has an error.
	outcomeAgain                       // It has failed for the moment, and is repeated alone.
	outcomeTooLarge                    // It did not fit, and is asked for alone: that was no attempt.
)

// lookupOutcome is the outcome of a batch for one look-up.
type lookupOutcome struct {
	kind     outcomeKind
	response *polynymv1.ResolveIdentityResponse
	err      *Error
}

// call resolves a batch, and returns the outcome of each of its look-ups.
func (b *batcher) call(batch *batch) ([]lookupOutcome, error) {
	outcomes := make([]lookupOutcome, len(batch.lookups))
	if len(batch.lookups) == 1 {
		response, err := b.client.Directory.ResolveIdentity(batch.ctx, batch.lookups[0].request)
		outcomes[0] = sharedOutcome(response, asError(err))
		return outcomes, err
	}
	request := batchRequest(batch.lookups[0].request)
	request.Identifiers = make([]*polynymv1.Identifier, len(batch.lookups))
	for i, lookup := range batch.lookups {
		request.Identifiers[i] = lookup.request.GetIdentifier()
	}
	items, err := b.client.resolveBatch(batch.ctx, request)
	for i := range outcomes {
		if err != nil {
			outcomes[i] = sharedOutcome(nil, asError(err))
		} else {
			outcomes[i] = sharedOutcome(itemOutcome(items[i]))
		}
	}
	return outcomes, err
}

// sharedOutcome is the outcome of a request, or of one of its items.
func sharedOutcome(response *polynymv1.ResolveIdentityResponse, err *Error) lookupOutcome {
	switch {
	case err == nil:
		return lookupOutcome{kind: outcomeAnswer, response: response}
	case err.Reason == ReasonAnswerTooLarge || err.Reason == ReasonUserTooLarge:
		return lookupOutcome{kind: outcomeTooLarge}
	case err.retryable(method{}) && !err.unreachable:
		return lookupOutcome{kind: outcomeAgain, err: err}
	default:
		return lookupOutcome{kind: outcomeFailed, err: err}
	}
}

// maxItems is the largest number of identifiers in a request.
func (b *batcher) maxItems() int {
	if known := int(b.limit.Load()); known > 0 {
		return min(known, maxBatchItems)
	}
	return maxBatchItems
}

// learn reports whether a request was refused because it exceeds the server's limit of items, and
// keeps the limit.
func (b *batcher) learn(err error, items int) bool {
	failure := asError(err)
	if failure == nil || failure.Reason != ReasonBatchTooLarge {
		return false
	}
	limit, _ := strconv.Atoi(failure.Metadata["limit"])
	if limit < 1 || limit >= items {
		return false
	}
	b.limit.Store(int64(limit))
	return true
}

// asError is the error that an interceptor has made.
func asError(err error) *Error {
	var failure *Error
	if err != nil && !errors.As(err, &failure) {
		failure = localError(codes.Internal, err.Error())
	}
	return failure
}
