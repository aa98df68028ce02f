package polynym

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// A Result is what ResolveMany found for one identifier.
type Result struct {
	// User is the owner. Nil if Err is not.
	User *polynymv1.User
	// Identity is the user's identity with the identifier.
	Identity *polynymv1.Identity
	// Err is the error with which Resolve would have failed.
	Err error
}

// ResolveMany finds the users who own identifiers, any number of them. The results are in the order
// of the identifiers. Each request that is needed has its own deadline, unless the context has one.
// If a request fails, its error is that of its identifiers; the other requests are still made,
// unless they would fail, too: the credential is refused, no server can be reached, or the time is
// over.
func (c *Client) ResolveMany(
	ctx context.Context, identifiers []*polynymv1.Identifier, options ...ResolveOption,
) []Result {
	ctx, cancel, template := c.newResolveCall(ctx, options)
	defer cancel()
	many := manyCall{
		client: c, template: template, identifiers: identifiers,
		results: make([]Result, len(identifiers)), sizes: make([]int, len(identifiers)),
		made: make([]int, len(identifiers)),
	}
	many.run(ctx)
	return many.results
}

// manyCall is one call of ResolveMany. The queues have the indices of identifiers without a result,
// and refused has those that may be asked for again.
type manyCall struct {
	client      *Client
	template    *polynymv1.ResolveIdentityRequest
	identifiers []*polynymv1.Identifier
	results     []Result
	sizes       []int
	made        []int // How many attempts each identifier has had.
	queue       []int
	alone       []int // Those that need a request of their own.
	refused     []int
	wait        time.Duration // The longest delay that a refusal asks for.
}

func (m *manyCall) run(ctx context.Context) {
	for i, identifier := range m.identifiers {
		encoded, err := encode(identifier)
		if err != nil {
			m.results[i].Err = err
			continue
		}
		m.sizes[i] = len(encoded)
		m.queue = append(m.queue, i)
	}
	m.drain(ctx)
	for number := 1; len(m.refused) > 0 && !m.client.retries.budget.spent(); number++ {
		if !m.pause(ctx, delay(number, m.wait)) {
			return
		}
		m.queue, m.refused, m.wait = m.refused, nil, 0
		m.drain(ctx)
	}
}

// pause waits before what was refused is asked for again. It reports false if the call has ended.
func (m *manyCall) pause(ctx context.Context, wait time.Duration) bool {
	rules := &m.client.retries
	ctx, cancel := withTimeout(ctx, m.client.settings.timeout)
	defer cancel()
	if rules.pause(ctx, wait) {
		return true
	}
	for _, index := range m.refused {
		m.results[index].Err = rules.interrupted(ctx, asError(m.results[index].Err))
	}
	return false
}

// drain makes requests until the queue is empty.
func (m *manyCall) drain(ctx context.Context) {
	for len(m.alone)+len(m.queue) > 0 {
		if len(m.alone) > 0 {
			next := m.alone[0]
			m.alone = m.alone[1:]
			m.resolveAlone(ctx, next)
		} else if batch := m.next(); len(batch) == 1 {
			m.resolveAlone(ctx, batch[0])
		} else {
			m.resolveTogether(ctx, batch)
		}
	}
}

// next takes the identifiers of the next request from the queue.
func (m *manyCall) next() []int {
	count, bytes, limit := 0, 0, m.client.batcher.maxItems()
	for count < len(m.queue) && count < limit {
		bytes += m.sizes[m.queue[count]] + itemOverhead
		if count > 0 && bytes > maxBatchBytes {
			break
		}
		count++
	}
	batch := m.queue[:count:count]
	m.queue = m.queue[count:]
	return batch
}

func (m *manyCall) resolveAlone(ctx context.Context, index int) {
	request := proto.CloneOf(m.template)
	request.Identifier = m.identifiers[index]
	ctx = withPlan(ctx, &plan{made: m.made[index]})
	found, err := m.client.Directory.ResolveIdentity(ctx, request)
	if err != nil {
		m.fail([]int{index}, err)
		return
	}
	m.results[index] = Result{User: found.GetUser(), Identity: found.GetIdentity()}
}

func (m *manyCall) resolveTogether(ctx context.Context, batch []int) {
	request := batchRequest(m.template)
	for _, index := range batch {
		request.Identifiers = append(request.Identifiers, m.identifiers[index])
	}
	attempts := new(plan)
	for _, index := range batch {
		attempts.made = max(attempts.made, m.made[index])
	}
	items, err := m.client.resolveBatch(withPlan(ctx, attempts), request)
	switch {
	case m.client.batcher.learn(err, len(batch)):
		m.queue = append(batch, m.queue...)
	case err != nil:
		m.fail(batch, err)
	default:
		m.take(batch, items, attempts.made)
	}
}

// fail gives the error of a request to its identifiers, and to the rest if that would fail, too.
func (m *manyCall) fail(batch []int, err error) {
	if endsAll(asError(err)) {
		batch = slices.Concat(batch, m.alone, m.queue, m.refused)
		m.alone, m.queue, m.refused = nil, nil, nil
	}
	for _, index := range batch {
		m.results[index] = Result{Err: err}
	}
}

// endsAll reports whether further requests would fail as one has.
func endsAll(err *Error) bool {
	switch err.Code {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Canceled, codes.DeadlineExceeded:
		return true
	}
	return err.unreachable
}

// take reads the items of a batch, which has had a number of attempts. Those that did not fit are
// resolved with the next batch, or alone if they were the first; those that are refused are asked
// for again later.
func (m *manyCall) take(
	batch []int, items []*polynymv1.BatchResolveIdentitiesResponse_Result, made int,
) {
	var again []int
	for i, index := range batch {
		found, err := itemOutcome(items[i])
		switch {
		case err == nil:
			m.results[index] = Result{User: found.GetUser(), Identity: found.GetIdentity()}
		case err.Reason == ReasonUserTooLarge || err.Reason == ReasonAnswerTooLarge && i == 0:
			m.alone = append(m.alone, index)
		case err.Reason == ReasonAnswerTooLarge:
			again = append(again, index)
		default:
			m.results[index].Err = err
			m.made[index] = made
			if err.retryable(method{}) && made < m.client.retries.maxAttempts {
				m.refused = append(m.refused, index)
				m.wait = max(m.wait, err.RetryAfter)
			}
		}
	}
	m.queue = append(again, m.queue...)
}

// resolveBatch returns the items of the response to a batch, as many as there are identifiers.
func (c *Client) resolveBatch(
	ctx context.Context, request *polynymv1.BatchResolveIdentitiesRequest,
) ([]*polynymv1.BatchResolveIdentitiesResponse_Result, error) {
	response, err := c.Directory.BatchResolveIdentities(ctx, request)
	if err == nil && len(response.GetResults()) != len(request.GetIdentifiers()) {
		err = localError(codes.Internal, "the batch has another number of results than of items")
	}
	return response.GetResults(), err
}
