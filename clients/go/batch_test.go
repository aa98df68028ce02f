package polynym_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

const (
	methodSingle = "ResolveIdentity"
	methodBatch  = "BatchResolveIdentities"
)

// directory answers look-ups of handles: with the user of that name, or with an error for an item
// of a batch. Look-ups of the handles `held-…` wait for release.
type directory struct {
	release chan struct{}
	items   map[string]error // By handle.
	limit   int
	after   func(ctx context.Context, c call) (proto.Message, error) // Answers after the release.
}

func newDirectory() *directory {
	return &directory{release: make(chan struct{}), items: map[string]error{}, limit: 1000}
}

func (d *directory) answer(ctx context.Context, c call) (proto.Message, error) {
	select {
	case <-d.release:
		if d.after != nil {
			return d.after(ctx, c)
		}
	default:
	}
	switch request := c.request.(type) {
	case *polynymv1.ResolveIdentityRequest:
		handle := request.GetIdentifier().GetHandle()
		if err := d.hold(ctx, handle); err != nil {
			return nil, err
		}
		return &polynymv1.ResolveIdentityResponse{User: &polynymv1.User{DisplayName: handle}}, nil
	case *polynymv1.BatchResolveIdentitiesRequest:
		if len(request.GetIdentifiers()) > d.limit {
			return nil, failureAbout(codes.InvalidArgument, "BATCH_TOO_LARGE",
				map[string]string{"limit": fmt.Sprint(d.limit)})
		}
		response := new(polynymv1.BatchResolveIdentitiesResponse)
		for _, identifier := range request.GetIdentifiers() {
			if err := d.hold(ctx, identifier.GetHandle()); err != nil {
				return nil, err
			}
			response.Results = append(response.Results, d.item(identifier.GetHandle()))
		}
		return response, nil
	}
	return nil, failure(codes.Unimplemented, "METHOD_UNKNOWN")
}

func (d *directory) hold(ctx context.Context, handle string) error {
	if !strings.HasPrefix(handle, "held-") {
		return nil
	}
	select {
	case <-d.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *directory) item(handle string) *polynymv1.BatchResolveIdentitiesResponse_Result {
	if err := d.items[handle]; err != nil {
		failed := &polynymv1.BatchResolveIdentitiesResponse_Result_Error{
			Error: &status.Status{Code: int32(grpcstatus.Code(err))}}
		proto.Merge(failed.Error, grpcstatus.Convert(err).Proto())
		return &polynymv1.BatchResolveIdentitiesResponse_Result{Outcome: failed}
	}
	found := &polynymv1.BatchResolveIdentitiesResponse_Result_Found{
		Found: &polynymv1.BatchResolveIdentitiesResponse_Found{
			User: &polynymv1.User{DisplayName: handle}}}
	return &polynymv1.BatchResolveIdentitiesResponse_Result{Outcome: found}
}

// lookUps runs look-ups in the background.
type lookUps struct {
	t      *testing.T
	client *polynym.Client
	group  waitGroup
	mutex  sync.Mutex
	errors map[string]error
}

func (l *lookUps) start(ctx context.Context, handle string, options ...polynym.ResolveOption) {
	l.group.Go(func() {
		found, err := l.client.Resolve(ctx, polynym.Handle(handle), options...)
		if err == nil && found.GetUser().GetDisplayName() != handle {
			l.t.Errorf("%s is %s", handle, found.GetUser().GetDisplayName())
		}
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.errors[handle] = err
	})
}

// startHeld starts a directory and a client with as many look-ups under way as go alone.
func startHeld(t *testing.T, options ...polynym.Option) (*directory, *fake, *lookUps) {
	t.Helper()
	directory := newDirectory()
	fake := startFake(t, directory.answer)
	options = append([]polynym.Option{
		polynym.WithTimeout(time.Minute), polynym.WithStalledAfter(time.Minute)}, options...)
	running := &lookUps{t: t, client: connect(t, fake.address, options...), errors: map[string]error{}}
	for i := range polynym.MaxInFlight {
		running.start(t.Context(), fmt.Sprint("held-", i))
	}
	eventually(t, func() bool { return len(fake.received()) == polynym.MaxInFlight })
	return directory, fake, running
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for begin := time.Now(); !condition(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not happen")
		}
	}
}

// sizes has the number of identifiers of each request after the first ones.
func sizes(fake *fake) []int {
	var sizes []int
	for _, c := range fake.received()[polynym.MaxInFlight:] {
		if batch, ok := c.request.(*polynymv1.BatchResolveIdentitiesRequest); ok {
			sizes = append(sizes, len(batch.GetIdentifiers()))
		} else {
			sizes = append(sizes, 1)
		}
	}
	return sizes
}

func (l *lookUps) wantNoErrors() {
	l.t.Helper()
	l.group.Wait()
	for handle, err := range l.errors {
		if err != nil {
			l.t.Errorf("%s: %v", handle, err)
		}
	}
}

func TestLookUpsThatWaitShareARequest(t *testing.T) {
	directory, fake, running := startHeld(t)
	for i := range 50 {
		running.start(t.Context(), fmt.Sprint("user-", i))
	}
	eventually(t, func() bool { return running.client.Waiting() == 50 })
	close(directory.release)
	running.wantNoErrors()
	if got := sizes(fake); len(got) != 1 || got[0] != 50 {
		t.Errorf("the requests have %v identifiers", got)
	}
	if running.client.Groups() != 0 {
		t.Errorf("%d groups are left", running.client.Groups())
	}
}

func TestBatchesHaveLimits(t *testing.T) {
	directory, fake, running := startHeld(t)
	for i := range 1001 {
		running.start(t.Context(), fmt.Sprint("user-", i))
	}
	large := strings.Repeat("x", 500<<10)
	running.start(t.Context(), large+"1")
	running.start(t.Context(), large+"2")
	eventually(t, func() bool { return running.client.Waiting() == 1003 })
	close(directory.release)
	running.wantNoErrors()
	for _, size := range sizes(fake) {
		if size > 1000 {
			t.Errorf("a request has %d identifiers", size)
		}
	}
	for _, c := range fake.received() {
		if size := proto.Size(c.request); size > 900<<10 {
			t.Errorf("a request has %d bytes", size)
		}
	}
}

func TestOnlyAlikeLookUpsShareARequest(t *testing.T) {
	directory, fake, running := startHeld(t)
	alone := map[string][]polynym.ResolveOption{
		"tenant":      {polynym.InTenant("acme")},
		"consistency": {polynym.Consistency(polynymv1.Consistency_CONSISTENCY_EVENTUAL)},
		"staleness":   {polynym.MaxStaleness(0)},
		"disabled":    {polynym.ShowDisabled()},
		"mask":        {polynym.Fields("user_id")},
		"empty mask":  {polynym.Fields()},
		"time":        {polynym.AsOf(time.Now())},
		"linear":      {polynym.Consistency(polynymv1.Consistency_CONSISTENCY_LINEARIZABLE)},
	}
	for handle, options := range alone {
		running.start(t.Context(), handle, options...)
	}
	running.start(metadata.AppendToOutgoingContext(t.Context(), "polynym-reason", "x"), "headers")
	// None of them waits for the look-ups that are held.
	eventually(t, func() bool {
		running.mutex.Lock()
		defer running.mutex.Unlock()
		return len(running.errors) == len(alone)+1
	})
	close(directory.release)
	running.wantNoErrors()
	for _, c := range fake.received() {
		if c.method != methodSingle {
			t.Errorf("a look-up went by %s", c.method)
		}
	}
}

func TestLinearizableLookUpsNeverShareARequest(t *testing.T) {
	directory := newDirectory()
	fake := startFake(t, directory.answer)
	running := &lookUps{t: t, client: connect(t, fake.address), errors: map[string]error{}}
	for i := range 20 {
		linear := polynym.Consistency(polynymv1.Consistency_CONSISTENCY_LINEARIZABLE)
		running.start(t.Context(), fmt.Sprint("held-", i), linear)
	}
	eventually(t, func() bool { return len(fake.received()) == 20 })
	close(directory.release)
	running.wantNoErrors()
}

func TestBatchingCanBeOff(t *testing.T) {
	directory, fake, running := startHeld(t, polynym.WithBatching(false))
	for i := range 20 {
		running.start(t.Context(), fmt.Sprint("held-x", i))
	}
	eventually(t, func() bool { return len(fake.received()) == 20+polynym.MaxInFlight })
	close(directory.release)
	running.wantNoErrors()
}

func TestACallerThatLeavesLeavesTheOthersAlone(t *testing.T) {
	directory, fake, running := startHeld(t)
	ctx, cancel := context.WithCancel(t.Context())
	running.start(ctx, "leaves")
	running.start(t.Context(), "stays")
	running.start(t.Context(), "stays, too")
	eventually(t, func() bool { return running.client.Waiting() == 3 })
	cancel()
	eventually(t, func() bool { return running.client.Waiting() == 2 })
	close(directory.release)
	running.group.Wait()
	if err := running.errors["leaves"]; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that was cancelled: %v", err)
	}
	if running.errors["stays"] != nil || running.errors["stays, too"] != nil {
		t.Errorf("%v", running.errors)
	}
	if got := sizes(fake); len(got) != 1 || got[0] != 2 {
		t.Errorf("the requests have %v identifiers", got)
	}
}

func TestABatchWhoseCallersAllLeftIsCancelled(t *testing.T) {
	cancelled := make(chan struct{})
	first := make(chan struct{})
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.method == methodSingle {
			<-first
			return &polynymv1.ResolveIdentityResponse{}, nil
		}
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	client := connect(t, fake.address,
		polynym.WithTimeout(time.Minute), polynym.WithStalledAfter(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	var group waitGroup
	for range polynym.MaxInFlight {
		group.Go(func() { _, _ = client.Resolve(t.Context(), polynym.Handle("first")) })
	}
	eventually(t, func() bool { return len(fake.received()) == polynym.MaxInFlight })
	for range 5 {
		group.Go(func() { _, _ = client.Resolve(ctx, polynym.Handle("leaves")) })
	}
	eventually(t, func() bool { return client.Waiting() == 5 })
	close(first)
	eventually(t, func() bool { return len(fake.received()) == polynym.MaxInFlight+1 })
	cancel()
	group.Wait()
	select {
	case <-cancelled:
	case <-time.After(time.Minute):
		t.Error("the server still works on the batch")
	}
}

func TestItemsOfABatchFailAsSingleCalls(t *testing.T) {
	directory, fake, running := startHeld(t)
	directory.items["missing"] = failure(codes.NotFound, "IDENTITY_NOT_FOUND")
	directory.items["large"] = failure(codes.ResourceExhausted, "USER_TOO_LARGE")
	directory.items["late"] = failure(codes.ResourceExhausted, "ANSWER_TOO_LARGE")
	directory.items["unavailable"] = failure(codes.Unavailable, "STORE_UNAVAILABLE")
	directory.items["limited"] = failure(codes.ResourceExhausted, "RATE_LIMITED", retryAfter(time.Millisecond))
	for handle := range directory.items {
		running.start(t.Context(), handle)
	}
	running.start(t.Context(), "found")
	_, err := running.client.Resolve(t.Context(), polynym.Handle("\xff"))
	wantError(t, err, polynym.ErrInvalidArgument, "IDENTIFIER_INVALID")
	eventually(t, func() bool { return running.client.Waiting() == 6 })
	close(directory.release)
	running.group.Wait()
	wantError(t, running.errors["missing"], polynym.ErrNotFound, "IDENTITY_NOT_FOUND")
	delete(running.errors, "missing")
	running.wantNoErrors()
	if got := sizes(fake); len(got) != 5 || got[0] != 6 {
		t.Errorf("the requests have %v identifiers", got)
	}
}

func TestTheServersLimitOfABatchIsLearned(t *testing.T) {
	directory, fake, running := startHeld(t)
	directory.limit = 10
	for i := range 15 {
		running.start(t.Context(), fmt.Sprint("user-", i))
	}
	eventually(t, func() bool { return running.client.Waiting() == 15 })
	close(directory.release)
	running.wantNoErrors()
	got := sizes(fake)
	if !slices.Equal(got, []int{15, 10, 5}) && !slices.Equal(got, []int{15, 5, 10}) {
		t.Errorf("the requests have %v identifiers", got)
	}
	identifiers := make([]*polynymv1.Identifier, 25)
	for i := range identifiers {
		identifiers[i] = polynym.Handle(fmt.Sprint("user-", i))
	}
	before := len(fake.received())
	for i, result := range running.client.ResolveMany(t.Context(), identifiers) {
		if result.Err != nil || result.User.GetDisplayName() != fmt.Sprint("user-", i) {
			t.Errorf("%d: %v", i, result)
		}
	}
	if calls := len(fake.received()) - before; calls != 3 {
		t.Errorf("%d requests", calls)
	}
}

func TestAStalledRequestDoesNotHoldUpTheOthers(t *testing.T) {
	directory, fake, running := startHeld(t, polynym.WithStalledAfter(10*time.Millisecond))
	running.start(t.Context(), "a")
	running.start(t.Context(), "b")
	eventually(t, func() bool { return len(fake.received()) > polynym.MaxInFlight })
	eventually(t, func() bool {
		running.mutex.Lock()
		defer running.mutex.Unlock()
		return len(running.errors) == 2
	})
	close(directory.release)
	running.wantNoErrors()
	if running.client.Groups() != 0 {
		t.Errorf("%d groups are left", running.client.Groups())
	}
}
