package polynym

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

const (
	// maxInFlight is the number of requests of one group in flight from which look-ups wait.
	maxInFlight = 2
	// A request that takes longer than defaultStalledAfter does not hold up the others of its group. At
	// most maxStalled of these are in flight.
	defaultStalledAfter = 100 * time.Millisecond
	maxStalled          = 8
	// itemOverhead is the maximum size of an item of a batch beyond its identifier: tag and length.
	itemOverhead = 8
)

// batcher lets concurrent look-ups share requests. A look-up goes at once, alone, if fewer than
// maxInFlight requests of its group are under way. Otherwise it waits, and goes with all others that
// wait when one of these returns. No timer delays a look-up.
type batcher struct {
	directory    polynymv1.DirectoryServiceClient
	stalledAfter time.Duration
	// limit is the server's limit of items, once it has refused more. Zero: not known.
	limit atomic.Int64

	mutex  sync.Mutex
	groups map[groupKey]*group
}

// groupKey has everything that the look-ups of one request have in common. They also share the
// client, and thereby the credential.
type groupKey struct {
	tenant           string
	consistency      polynymv1.Consistency
	hasStaleness     bool
	stalenessSeconds int64
	stalenessNanos   int32
	showDisabled     bool
	mask             string
}

type group struct {
	key      groupKey
	inFlight int
	stalled  int
	waiting  []*lookup
	left     int // How many of those waiting have left.
}

// lookup is one caller of Resolve.
type lookup struct {
	request  *polynymv1.ResolveIdentityRequest
	size     int
	deadline time.Time
	outcome  chan lookupOutcome
	left     bool
	batch    *batch // Nil while it waits.
}

// lookupOutcome is the outcome of a batch for one look-up. With alone, the look-up is repeated in a
// request of its own, and the failure, if any, counts as its first attempt.
type lookupOutcome struct {
	response *polynymv1.ResolveIdentityResponse
	err      *Error
	alone    bool
}

// batch is a request of several look-ups.
type batch struct {
	lookups []*lookup
	present int // How many of its look-ups have not left.
	ctx     context.Context
	cancel  context.CancelFunc
}

// shareable reports whether a look-up may share a request with others.
func shareable(ctx context.Context, request *polynymv1.ResolveIdentityRequest) bool {
	if request.GetConsistency() == polynymv1.Consistency_CONSISTENCY_LINEARIZABLE ||
		request.GetAsOf() != nil {
		return false
	}
	headers, _ := metadata.FromOutgoingContext(ctx)
	return len(headers) == 0
}

func groupOf(request *polynymv1.ResolveIdentityRequest) groupKey {
	key := groupKey{
		tenant:       request.GetTenant(),
		consistency:  request.GetConsistency(),
		showDisabled: request.GetShowDisabled(),
	}
	if staleness := request.GetMaxStaleness(); staleness != nil {
		key.hasStaleness = true
		key.stalenessSeconds, key.stalenessNanos = staleness.GetSeconds(), staleness.GetNanos()
	}
	if mask := request.GetReadMask(); mask != nil {
		key.mask = "\x00" + strings.Join(mask.GetPaths(), "\x00")
	}
	return key
}

func (b *batcher) resolve(
	ctx context.Context, request *polynymv1.ResolveIdentityRequest,
) (*polynymv1.ResolveIdentityResponse, error) {
	encoded, err := encode(request.GetIdentifier())
	if err != nil {
		return nil, err
	}
	if len(encoded) > maxBatchBytes-itemOverhead {
		return b.directory.ResolveIdentity(ctx, request)
	}
	b.mutex.Lock()
	group := b.group(groupOf(request))
	if group.inFlight < maxInFlight {
		group.inFlight++
		b.mutex.Unlock()
		defer b.flight(group)()
		return b.directory.ResolveIdentity(ctx, request)
	}
	lookup, err := newLookup(ctx, request, encoded)
	if err == nil {
		group.waiting = append(group.waiting, lookup)
	}
	b.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case outcome := <-lookup.outcome:
		return b.finish(ctx, request, outcome)
	case <-ctx.Done():
		b.leave(group, lookup)
		return nil, newError(ctx, ctx.Err(), false)
	}
}

// newLookup copies the identifier: the caller may change its own once its call has ended, even if
// the batch has not.
func newLookup(
	ctx context.Context, request *polynymv1.ResolveIdentityRequest, encoded []byte,
) (*lookup, error) {
	request = &polynymv1.ResolveIdentityRequest{
		Tenant: request.Tenant, Consistency: request.Consistency, MaxStaleness: request.MaxStaleness,
		ShowDisabled: request.ShowDisabled, ReadMask: request.ReadMask,
		Identifier: new(polynymv1.Identifier),
	}
	if err := proto.Unmarshal(encoded, request.Identifier); err != nil {
		return nil, localError(codes.InvalidArgument, "the identifier is malformed")
	}
	deadline, _ := ctx.Deadline()
	return &lookup{
		request: request, size: len(encoded) + itemOverhead, deadline: deadline,
		outcome: make(chan lookupOutcome, 1),
	}, nil
}

// finish returns the outcome of a batch to a caller, or resolves the identifier alone.
func (b *batcher) finish(
	ctx context.Context, request *polynymv1.ResolveIdentityRequest, outcome lookupOutcome,
) (*polynymv1.ResolveIdentityResponse, error) {
	switch {
	case outcome.alone && outcome.err != nil:
		return b.directory.ResolveIdentity(withEarlierFailure(ctx, outcome.err), request)
	case outcome.alone:
		return b.directory.ResolveIdentity(ctx, request)
	case outcome.err != nil:
		return nil, outcome.err
	default:
		return outcome.response, nil
	}
}

// leave removes a look-up whose caller has left. The last one cancels its batch.
func (b *batcher) leave(group *group, lookup *lookup) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	lookup.left = true
	if lookup.batch != nil {
		lookup.batch.present--
		if lookup.batch.present == 0 {
			lookup.batch.cancel()
		}
		return
	}
	group.left++
	if group.left > len(group.waiting)/2 {
		group.waiting, group.left = present(group.waiting), 0
	}
}

func present(lookups []*lookup) []*lookup {
	var staying []*lookup
	for _, lookup := range lookups {
		if !lookup.left {
			staying = append(staying, lookup)
		}
	}
	return staying
}

func (b *batcher) group(key groupKey) *group {
	found := b.groups[key]
	if found == nil {
		if b.groups == nil {
			b.groups = make(map[groupKey]*group)
		}
		found = &group{key: key}
		b.groups[key] = found
	}
	return found
}

// flight watches a request in flight, and returns the function that ends it. A request that has
// stalled no longer holds up the waiting look-ups.
func (b *batcher) flight(group *group) (end func()) {
	ended, stalled := false, false
	timer := time.AfterFunc(b.stalledAfter, func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		if !ended && group.stalled < maxStalled {
			stalled = true
			group.stalled++
			group.inFlight--
			b.sendNext(group)
		}
	})
	return func() {
		timer.Stop()
		b.mutex.Lock()
		defer b.mutex.Unlock()
		ended = true
		if stalled {
			group.stalled--
		} else {
			group.inFlight--
		}
		b.sendNext(group)
	}
}

// sendNext sends the waiting look-ups, as far as the limits allow.
func (b *batcher) sendNext(group *group) {
	for group.inFlight < maxInFlight && len(group.waiting) > 0 {
		next := b.take(group)
		if next == nil {
			continue
		}
		group.inFlight++
		go b.send(group, next)
	}
	if group.inFlight == 0 && group.stalled == 0 {
		delete(b.groups, group.key)
	}
}

// take makes a batch of the look-ups that have waited longest. Nil if all callers have left.
func (b *batcher) take(group *group) *batch {
	limit := maxBatchItems
	if known := int(b.limit.Load()); known > 0 {
		limit = min(limit, known)
	}
	taken := &batch{}
	bytes, end := 0, 0
	var deadline time.Time
	for ; end < len(group.waiting) && len(taken.lookups) < limit; end++ {
		lookup := group.waiting[end]
		if lookup.left {
			group.left--
			continue
		}
		bytes += lookup.size
		if bytes > maxBatchBytes {
			break
		}
		lookup.batch = taken
		taken.lookups = append(taken.lookups, lookup)
		if lookup.deadline.After(deadline) {
			deadline = lookup.deadline
		}
	}
	group.waiting = group.waiting[end:]
	if len(taken.lookups) == 0 {
		return nil
	}
	taken.present = len(taken.lookups)
	taken.ctx, taken.cancel = context.WithDeadline(context.Background(), deadline)
	return taken
}

// send resolves a batch, and gives each look-up its outcome.
func (b *batcher) send(group *group, batch *batch) {
	defer batch.cancel()
	end := b.flight(group)
	outcomes := b.call(batch)
	end()
	for i, lookup := range batch.lookups {
		lookup.outcome <- outcomes[i]
	}
}

func (b *batcher) call(batch *batch) []lookupOutcome {
	outcomes := make([]lookupOutcome, len(batch.lookups))
	if len(batch.lookups) == 1 {
		response, err := b.directory.ResolveIdentity(batch.ctx, batch.lookups[0].request)
		outcomes[0] = lookupOutcome{response: response, err: asError(batch.ctx, err)}
		return outcomes
	}
	request := batchRequest(batch.lookups[0].request)
	request.Identifiers = make([]*polynymv1.Identifier, len(batch.lookups))
	for i, lookup := range batch.lookups {
		request.Identifiers[i] = lookup.request.GetIdentifier()
	}
	response, err := b.directory.BatchResolveIdentities(batch.ctx, request)
	failure := asError(batch.ctx, err)
	items := response.GetResults()
	if failure == nil && len(items) != len(outcomes) {
		failure = localError(codes.Internal, "the batch has another number of results than of items")
	}
	limit := batchLimit(err)
	if limit > 0 {
		b.limit.Store(int64(limit))
	}
	for i := range outcomes {
		switch {
		case limit > 0:
			outcomes[i] = lookupOutcome{alone: true}
		case failure != nil:
			outcomes[i] = lookupOutcome{err: failure}
		default:
			outcomes[i] = sharedOutcome(items[i])
		}
	}
	return outcomes
}

// sharedOutcome reads an item. An error that can be retried counts as the first attempt of its
// caller; an item that did not fit into the response is no attempt.
func sharedOutcome(item *polynymv1.BatchResolveIdentitiesResponse_Result) lookupOutcome {
	response, err := itemOutcome(item)
	switch {
	case err == nil:
		return lookupOutcome{response: response}
	case err.retryable(method{}):
		return lookupOutcome{err: err, alone: true}
	case err.Code == codes.ResourceExhausted:
		return lookupOutcome{alone: true}
	default:
		return lookupOutcome{err: err}
	}
}

// batchLimit returns the server's limit of items if a batch exceeded it, and else zero.
func batchLimit(err error) int {
	var failure *Error
	if !errors.As(err, &failure) || failure.Reason != reasonBatchTooLarge {
		return 0
	}
	limit, _ := strconv.Atoi(failure.Metadata["limit"])
	return max(limit, 1)
}

func asError(ctx context.Context, err error) *Error {
	if err == nil {
		return nil
	}
	return newError(ctx, err, false)
}
