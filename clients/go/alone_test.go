package polynym_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// startSharing starts look-ups that share a request, and a server that answers all further requests
// by a function.
func startSharing(
	t *testing.T, waiting int, answer func(ctx context.Context, c call) (proto.Message, error),
	options ...polynym.Option,
) (*fake, *lookUps) {
	t.Helper()
	directory, fake, running := startHeld(t, options...)
	for i := range waiting {
		running.start(t.Context(), fmt.Sprint("user-", i))
	}
	eventually(t, func() bool { return running.client.Waiting() == waiting })
	directory.after = answer
	close(directory.release)
	return fake, running
}

func found(c call) (proto.Message, error) {
	handle := c.request.(*polynymv1.ResolveIdentityRequest).GetIdentifier().GetHandle()
	return &polynymv1.ResolveIdentityResponse{User: &polynymv1.User{DisplayName: handle}}, nil
}

func TestTheLookUpsOfAFailedBatchGoOnAlone(t *testing.T) {
	var now, most atomic.Int64
	fake, running := startSharing(t, 100, func(_ context.Context, c call) (proto.Message, error) {
		if c.method == methodBatch {
			return nil, failure(codes.Unavailable, "STORE_UNAVAILABLE")
		}
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(time.Millisecond)
		return found(c)
	})
	running.wantNoErrors()
	if got := sizes(fake); len(got) != 101 || got[0] != 100 {
		t.Errorf("the requests have %v identifiers", got)
	}
	if most.Load() > polynym.MaxAlone {
		t.Errorf("%d look-ups went alone at once", most.Load())
	}
}

func TestASharedAttemptCountsAsTheFirst(t *testing.T) {
	unavailable := failure(codes.Unavailable, "STORE_UNAVAILABLE")
	tests := map[string]struct {
		options []polynym.Option
		calls   int // After the batch.
	}{
		"two more": {[]polynym.Option{}, 2 * 2},
		"no more":  {[]polynym.Option{polynym.WithMaxAttempts(1)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fake, running := startSharing(t, 2, func(context.Context, call) (proto.Message, error) {
				return nil, unavailable
			}, test.options...)
			running.group.Wait()
			for i := range 2 {
				err := running.errors[fmt.Sprint("user-", i)]
				wantError(t, err, polynym.ErrUnavailable, "STORE_UNAVAILABLE")
			}
			if calls := len(sizes(fake)) - 1; calls != test.calls {
				t.Errorf("%d calls after the batch", calls)
			}
		})
	}
}

func TestInAnOutageNoLookUpGoesOnAlone(t *testing.T) {
	directory := newDirectory()
	var down atomic.Bool
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if down.Load() {
			return nil, failure(codes.Unavailable, "STORE_UNAVAILABLE")
		}
		return directory.answer(ctx, c)
	})
	client := connect(t, fake.address, patience, polynym.WithStalledAfter(time.Minute))
	down.Store(true)
	for range 10 {
		_, err := client.GetUser(t.Context(), "1")
		wantError(t, err, polynym.ErrUnavailable, "STORE_UNAVAILABLE")
	}
	down.Store(false)
	running := &lookUps{t: t, client: client, errors: map[string]error{}}
	before := len(fake.received())
	for i := range polynym.MaxInFlight {
		running.start(t.Context(), fmt.Sprint("held-", i))
	}
	eventually(t, func() bool { return len(fake.received()) == before+polynym.MaxInFlight })
	for i := range 50 {
		running.start(t.Context(), fmt.Sprint("user-", i))
	}
	eventually(t, func() bool { return client.Waiting() == 50 })
	down.Store(true)
	close(directory.release)
	running.group.Wait()
	if calls := len(fake.received()) - before - polynym.MaxInFlight; calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestALookUpLeavesASlowBatchAtHalfOfItsTime(t *testing.T) {
	fake, running := startSharing(t, 2, func(ctx context.Context, c call) (proto.Message, error) {
		if c.method == methodSingle {
			return found(c)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}, polynym.WithTimeout(5*time.Second))
	running.wantNoErrors()
	if got := sizes(fake); len(got) != 3 || got[0] != 2 {
		t.Errorf("the requests have %v identifiers", got)
	}
}

func TestALookUpWithARequestForItselfStaysWithIt(t *testing.T) {
	fake, running := startSharing(t, 1, func(ctx context.Context, c call) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, polynym.WithTimeout(3*time.Second))
	running.group.Wait()
	wantError(t, running.errors["user-0"], polynym.ErrDeadlineExceeded, "")
	if got := sizes(fake); len(got) != 1 {
		t.Errorf("the requests have %v identifiers", got)
	}
}
