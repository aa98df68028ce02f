package polynym_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func heartbeat(token string) *polynymv1.WatchResponse {
	kind := &polynymv1.WatchResponse_Heartbeat{Heartbeat: &polynymv1.Heartbeat{}}
	return &polynymv1.WatchResponse{ResumeToken: token, Kind: kind}
}

func event(id, token string) *polynymv1.WatchResponse {
	kind := &polynymv1.WatchResponse_Event{Event: &polynymv1.Event{EventId: id}}
	return &polynymv1.WatchResponse{ResumeToken: token, Kind: kind}
}

// watched returns the ids of the events until the watch fails.
func watched(
	ctx context.Context, client *polynym.Client, request *polynymv1.WatchRequest,
) (ids []string, err error) {
	for response, err := range client.Watch(ctx, request) {
		if err != nil {
			return ids, err
		}
		if event := response.GetEvent(); event != nil {
			ids = append(ids, event.GetEventId())
		}
	}
	return ids, nil
}

func TestAWatchResumesByItself(t *testing.T) {
	var fake *fake
	var tokens []string
	fake = startFake(t, nil)
	fake.watch = func(c call, stream grpc.ServerStream) error {
		tokens = append(tokens, c.request.(*polynymv1.WatchRequest).GetResumeToken())
		switch c.number {
		case 1:
			return failure(codes.Unavailable, "STORE_UNAVAILABLE")
		case 2:
			_ = stream.SendMsg(heartbeat("0"))
			_ = stream.SendMsg(event("a", "1"))
			return failure(codes.Unavailable, "WATCH_ENDED")
		case 3:
			_ = stream.SendMsg(heartbeat("1"))
			_ = stream.SendMsg(event("a", "1"))
			_ = stream.SendMsg(event("b", "2"))
			_ = stream.SendMsg(event("a", "3"))
			return failure(codes.ResourceExhausted, "OVERLOADED", retryAfter(time.Millisecond))
		case 4:
			_, err := fake.lose(stream.Context())
			return err
		case 5: // As the transport reports a stream that was reset.
			return status.Error(codes.Internal, "reset")
		default:
			return failure(codes.OutOfRange, "RESUME_EXPIRED")
		}
	}
	request := &polynymv1.WatchRequest{}
	ids, err := watched(t.Context(), connect(t, fake.address), request)
	wantError(t, err, polynym.ErrOutOfRange, "RESUME_EXPIRED")
	if !slices.Equal(ids, []string{"a", "b", "a"}) {
		t.Errorf("the events are %v", ids)
	}
	if !slices.Equal(tokens, []string{"", "", "1", "3", "3", "3"}) {
		t.Errorf("the tokens are %v", tokens)
	}
	if request.GetResumeToken() != "" {
		t.Error("the caller's request has changed")
	}
}

func TestAWatchThatNeverBeginsFails(t *testing.T) {
	fake := startFake(t, nil)
	fake.watch = func(call, grpc.ServerStream) error {
		return failure(codes.Unavailable, "STORE_UNAVAILABLE")
	}
	_, err := watched(t.Context(), connect(t, fake.address), &polynymv1.WatchRequest{})
	wantError(t, err, polynym.ErrUnavailable, "STORE_UNAVAILABLE")
	if calls := len(fake.received()); calls != 3 {
		t.Errorf("%d calls", calls)
	}
}

func TestASilentWatchConnectsAgain(t *testing.T) {
	fake := startFake(t, nil)
	fake.watch = func(c call, stream grpc.ServerStream) error {
		if c.number == 3 {
			return failure(codes.OutOfRange, "RESUME_EXPIRED")
		}
		_ = stream.SendMsg(heartbeat(fmt.Sprint(c.number)))
		<-stream.Context().Done()
		return nil
	}
	client := connect(t, fake.address, polynym.WithWatchSilence(20*time.Millisecond))
	_, err := watched(t.Context(), client, &polynymv1.WatchRequest{})
	wantError(t, err, polynym.ErrOutOfRange, "RESUME_EXPIRED")
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fake := startFake(t, nil)
	fake.watch = func(_ call, stream grpc.ServerStream) error {
		_ = stream.SendMsg(heartbeat("0"))
		cancel()
		<-stream.Context().Done()
		return nil
	}
	_, err := watched(ctx, connect(t, fake.address), &polynymv1.WatchRequest{})
	if !errors.Is(err, context.Canceled) || len(fake.received()) != 1 {
		t.Errorf("%v after %d calls", err, len(fake.received()))
	}
}

func TestAWatchEndsWithItsLoop(t *testing.T) {
	ended := make(chan struct{})
	fake := startFake(t, nil)
	fake.watch = func(_ call, stream grpc.ServerStream) error {
		_ = stream.SendMsg(heartbeat("0"))
		<-stream.Context().Done()
		close(ended)
		return nil
	}
	for range connect(t, fake.address).Watch(t.Context(), &polynymv1.WatchRequest{}) {
		break
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the server still has the watch")
	}
}

func TestAWatchSeesWhatHappens(t *testing.T) {
	client := connectTenant(t)
	var seen []string
	for response, err := range client.Watch(t.Context(), &polynymv1.WatchRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event := response.GetEvent(); event != nil {
			seen = append(seen, event.GetUserId())
		} else if len(seen) == 0 { // Changes after the first heartbeat are among the events.
			create(t, client, "watched-1")
			create(t, client, "watched-2")
		}
		if len(seen) == 2 {
			break
		}
	}
	for i, id := range seen {
		found, err := client.Resolve(t.Context(), polynym.Handle(fmt.Sprint("watched-", i+1)))
		if err != nil || found.GetUser().GetUserId() != id {
			t.Errorf("%v, %v", found, err)
		}
	}
}

// A fake server answers pings, so that only the missing heartbeats tell.
func TestASilentWatchOpensANewConnection(t *testing.T) {
	fake := startFake(t, nil)
	fake.watch = func(c call, stream grpc.ServerStream) error {
		if c.number == 3 {
			return failure(codes.OutOfRange, "RESUME_EXPIRED")
		}
		_ = stream.SendMsg(heartbeat(fmt.Sprint(c.number)))
		<-stream.Context().Done()
		return nil
	}
	client := connect(t, fake.address, polynym.WithWatchSilence(20*time.Millisecond))
	_, err := watched(t.Context(), client, &polynymv1.WatchRequest{})
	wantError(t, err, polynym.ErrOutOfRange, "RESUME_EXPIRED")
	fake.mutex.Lock()
	defer fake.mutex.Unlock()
	if len(fake.connections) != 3 {
		t.Errorf("%d connections", len(fake.connections))
	}
}

func TestAStreamWaitsForTheServer(t *testing.T) {
	address := freeAddress(t)
	client := connect(t, address, patience, quickly)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.GetUser(short, "1") // The connection has failed.
	wantError(t, err, polynym.ErrUnavailable, "")
	done := make(chan error)
	go func() {
		stream, err := client.Directory.Watch(t.Context(), &polynymv1.WatchRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		done <- err
	}()
	startFakeAt(t, address, answers(nil, failure(codes.OutOfRange, "RESUME_EXPIRED")))
	wantError(t, <-done, polynym.ErrOutOfRange, "RESUME_EXPIRED")
}

func TestAWatchOfNoServerFailsAsACall(t *testing.T) {
	tests := map[string]polynym.Option{
		"waiting":     polynym.WithTimeout(100 * time.Millisecond),
		"not waiting": polynym.WithWaitForReady(false),
	}
	for name, option := range tests {
		t.Run(name, func(t *testing.T) {
			servers := []string{freeAddress(t), freeAddress(t)}
			client := connect(t, "", polynym.WithServers(servers...), option, quickly)
			_, err := watched(t.Context(), client, &polynymv1.WatchRequest{})
			wantError(t, err, polynym.ErrUnavailable, "")
			text := "none of the servers " + strings.Join(servers, ", ") + " can be reached"
			if !strings.HasSuffix(err.Error(), text) {
				t.Error(err)
			}
		})
	}
}
