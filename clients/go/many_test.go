package polynym_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func handles(count int) []*polynymv1.Identifier {
	identifiers := make([]*polynymv1.Identifier, count)
	for i := range identifiers {
		identifiers[i] = polynym.Handle(fmt.Sprint("user-", i))
	}
	return identifiers
}

func TestResolveManyEndsWithARefusedCredential(t *testing.T) {
	fake := startFake(t, answers(nil, failure(codes.PermissionDenied, "TENANT_DENIED")))
	for _, result := range connect(t, fake.address, patience).ResolveMany(t.Context(), handles(2500)) {
		wantError(t, result.Err, polynym.ErrPermissionDenied, "TENANT_DENIED")
	}
	if calls := len(fake.received()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestResolveManyEndsWithItsTime(t *testing.T) {
	fake, client := startHolding(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(fake.received()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	for _, result := range client.ResolveMany(ctx, handles(2500)) {
		wantError(t, result.Err, context.Canceled, "")
	}
	if calls := len(fake.received()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestResolveManyKeepsTheAnswersBesideAFailedRequest(t *testing.T) {
	directory := newDirectory()
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.number == 2 {
			return nil, failure(codes.Internal, "INTERNAL")
		}
		return directory.answer(ctx, c)
	})
	for i, result := range connect(t, fake.address, patience).ResolveMany(t.Context(), handles(2500)) {
		if i >= 1000 && i < 2000 {
			wantError(t, result.Err, polynym.ErrInternal, "INTERNAL")
		} else if result.Err != nil || result.User.GetDisplayName() != fmt.Sprint("user-", i) {
			t.Fatalf("%d: %v", i, result)
		}
	}
}

func TestResolveManyAsksAgainForWhatIsRefused(t *testing.T) {
	directory := newDirectory()
	unavailable := failure(codes.Unavailable, "STORE_UNAVAILABLE")
	directory.items["user-3"] = unavailable
	limited := failure(codes.ResourceExhausted, "RATE_LIMITED", retryAfter(time.Millisecond))
	directory.items["user-5"] = limited
	directory.items["user-7"] = failure(codes.ResourceExhausted, "LIMIT_EXCEEDED")
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.number == 3 {
			delete(directory.items, "user-5")
		}
		return directory.answer(ctx, c)
	})
	results := connect(t, fake.address, patience).ResolveMany(t.Context(), handles(10))
	for i, result := range results {
		switch i {
		case 3:
			wantError(t, result.Err, polynym.ErrUnavailable, "STORE_UNAVAILABLE")
		case 7:
			wantError(t, result.Err, polynym.ErrResourceExhausted, "LIMIT_EXCEEDED")
		default:
			if result.Err != nil || result.User == nil {
				t.Errorf("%d: %v", i, result)
			}
		}
	}
	var sizes []int
	for _, c := range fake.received() {
		sizes = append(sizes, len(c.request.(*polynymv1.BatchResolveIdentitiesRequest).GetIdentifiers()))
	}
	if !slices.Equal(sizes, []int{10, 2, 2}) {
		t.Errorf("the requests have %v identifiers", sizes)
	}
}

func TestResolveManyDoesNotWaitBeyondItsTime(t *testing.T) {
	directory := newDirectory()
	directory.items["user-1"] = failure(codes.ResourceExhausted, "RATE_LIMITED", retryAfter(time.Hour))
	fake := startFake(t, directory.answer)
	results := connect(t, fake.address, patience).ResolveMany(t.Context(), handles(2))
	wantError(t, results[1].Err, polynym.ErrResourceExhausted, "RATE_LIMITED")
	if calls := len(fake.received()); calls != 1 || results[0].Err != nil {
		t.Errorf("%v after %d calls", results[0].Err, calls)
	}
}

func TestResolveManyMakesThreeAttemptsInAllRounds(t *testing.T) {
	unavailable := failure(codes.Unavailable, "STORE_UNAVAILABLE")
	directory := newDirectory()
	directory.items["user-1"] = unavailable
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.number < 3 {
			return nil, unavailable
		}
		return directory.answer(ctx, c)
	})
	results := connect(t, fake.address, patience).ResolveMany(t.Context(), handles(2))
	wantError(t, results[1].Err, polynym.ErrUnavailable, "STORE_UNAVAILABLE")
	if calls := len(fake.received()); calls != 3 || results[0].Err != nil {
		t.Errorf("%v after %d calls", results[0].Err, calls)
	}
}

func TestResolveManyEndsWithARequestThatFailsForAll(t *testing.T) {
	holding := startFake(t, func(ctx context.Context, _ call) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	tests := map[string]struct {
		address string
		option  polynym.Option
		want    error
	}{
		"no server": {freeAddress(t), polynym.WithWaitForReady(false), polynym.ErrUnavailable},
		"no time": {holding.address, polynym.WithTimeout(200 * time.Millisecond),
			polynym.ErrDeadlineExceeded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			client := connect(t, test.address, test.option,
				polynym.WithObserver(func(context.Context, polynym.Attempt) { attempts++ }))
			for _, result := range client.ResolveMany(t.Context(), handles(2500)) {
				wantError(t, result.Err, test.want, "")
			}
			if attempts != 1 {
				t.Errorf("%d attempts", attempts)
			}
		})
	}
}

func TestWhatWaitsToBeAskedAgainIsCancelled(t *testing.T) {
	directory := newDirectory()
	directory.items["user-1"] =
		failure(codes.ResourceExhausted, "RATE_LIMITED", retryAfter(20*time.Second))
	fake := startFake(t, directory.answer)
	ctx, cancel := context.WithCancel(t.Context())
	client := connect(t, fake.address, patience,
		polynym.WithObserver(func(context.Context, polynym.Attempt) { cancel() }))
	results := client.ResolveMany(ctx, handles(2))
	wantError(t, results[1].Err, context.Canceled, "")
	if results[0].Err != nil {
		t.Error(results[0].Err)
	}
}
