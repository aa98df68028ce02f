package polynym

import (
	"context"
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
	// A request that takes longer than defaultStalledAfter does not hold up the others of its group.
	// At most maxStalled of these are in flight.
	defaultStalledAfter = 100 * time.Millisecond
	maxStalled          = 8
	// maxAlone is the number of look-ups of a client that go alone at once after a shared request.
	maxAlone = 16
	// itemOverhead is the maximum size of an item of a batch beyond its identifier: tag and length.
	itemOverhead = 8
)

// batcher lets concurrent look-ups share requests. A look-up goes at once, alone, if fewer than
// maxInFlight requests of its group are under way. Otherwise it waits, and goes with all others
// that wait when one of these returns. No timer delays a look-up.
//
// A shared request has one attempt. If it fails, each of its look-ups goes on alone, by the
// ordinary rules; so does one that has no outcome at half of its time, unless it has its request
// for itself.
type batcher struct {
	client *Client
	alone  chan struct{} // Has an item for each look-up that goes alone.
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

// batch is a request of several look-ups.
type batch struct {
	lookups  []*lookup
	present  int       // How many of its look-ups have not left.
	deadline time.Time // The latest of its look-ups.
	ctx      context.Context
	cancel   context.CancelFunc
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
		return b.client.Directory.ResolveIdentity(ctx, request)
	}
	b.mutex.Lock()
	group := b.group(groupOf(request))
	if group.inFlight < maxInFlight {
		group.inFlight++
		b.mutex.Unlock()
		defer b.flight(group)()
		return b.client.Directory.ResolveIdentity(ctx, request)
	}
	lookup, err := newLookup(ctx, request, encoded)
	if err == nil {
		group.waiting = append(group.waiting, lookup)
	}
	b.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	return b.wait(ctx, group, lookup, request)
}

// wait waits for the outcome of a batch. A look-up that shares one, or waits for one, waits no
// longer than half of the time that its caller has.
func (b *batcher) wait(
	ctx context.Context, group *group, lookup *lookup, request *polynymv1.ResolveIdentityRequest,
) (*polynymv1.ResolveIdentityResponse, error) {
	half := time.NewTimer(time.Until(lookup.deadline) / 2)
	defer half.Stop()
	for {
		select {
		case outcome := <-lookup.outcome:
			return b.finish(ctx, request, outcome)
		case <-half.C:
			if b.leave(group, lookup, false) {
				return b.goAlone(ctx, request, 0)
			}
		case <-ctx.Done():
			b.leave(group, lookup, true)
			return nil, b.client.expired(ctx)
		}
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
	rules := &b.client.retries
	switch outcome.kind {
	case outcomeAnswer:
		return outcome.response, nil
	case outcomeTooLarge:
		return b.goAlone(ctx, request, 0)
	case outcomeAgain:
		if rules.maxAttempts == 1 || rules.budget.spent() {
			break
		}
		if rules.pause(ctx, delay(1, outcome.err.RetryAfter)) {
			return b.goAlone(ctx, request, 1)
		}
		return nil, rules.interrupted(ctx, outcome.err)
	}
	return nil, outcome.err
}

// goAlone resolves an identifier in a request of its own, once few enough others do, after a number
// of attempts.
func (b *batcher) goAlone(
	ctx context.Context, request *polynymv1.ResolveIdentityRequest, made int,
) (*polynymv1.ResolveIdentityResponse, error) {
	select {
	case b.alone <- struct{}{}:
		defer func() { <-b.alone }()
		return b.client.Directory.ResolveIdentity(withPlan(ctx, &plan{made: made}), request)
	case <-ctx.Done():
		return nil, b.client.expired(ctx)
	}
}

// leave removes a look-up, and reports true, unless it has its batch for itself and does not have
// to leave. The last one cancels its batch, unless the deadline has just ended that.
func (b *batcher) leave(group *group, lookup *lookup, must bool) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	batch := lookup.batch
	if batch != nil && len(batch.lookups) == 1 && !must {
		return false
	}
	lookup.left = true
	if batch != nil {
		batch.present--
		if batch.present == 0 && time.Now().Before(batch.deadline) {
			batch.cancel()
		}
		return true
	}
	group.left++
	if group.left > len(group.waiting)/2 {
		group.waiting, group.left = present(group.waiting), 0
	}
	return true
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

// newBatcher returns the batcher of a client.
func newBatcher(client *Client) batcher {
	return batcher{client: client, alone: make(chan struct{}, maxAlone)}
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
	timer := time.AfterFunc(b.client.settings.stalledAfter, func() {
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
	limit := b.maxItems()
	taken := &batch{}
	bytes, end := 0, 0
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
		if lookup.deadline.After(taken.deadline) {
			taken.deadline = lookup.deadline
		}
	}
	group.waiting = group.waiting[end:]
	if len(taken.lookups) == 0 {
		return nil
	}
	taken.present = len(taken.lookups)
	taken.ctx, taken.cancel = context.WithDeadline(context.Background(), taken.deadline)
	taken.ctx = withPlan(taken.ctx, &plan{once: true})
	return taken
}

// send resolves a batch, and gives each look-up its outcome. A batch that exceeds the server's
// limit waits again, to be split.
func (b *batcher) send(group *group, batch *batch) {
	defer batch.cancel()
	end := b.flight(group)
	outcomes, err := b.call(batch)
	if b.learn(err, len(batch.lookups)) {
		b.putBack(group, batch)
		end()
		return
	}
	end()
	for i, lookup := range batch.lookups {
		lookup.outcome <- outcomes[i]
	}
}

func (b *batcher) putBack(group *group, batch *batch) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	staying := present(batch.lookups)
	for _, lookup := range staying {
		lookup.batch = nil
	}
	group.waiting = append(staying, group.waiting...)
}
