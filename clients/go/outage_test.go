package polynym_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// quickly is for tests that wait for servers.
var quickly = polynym.WithBackoff(time.Millisecond, 20*time.Millisecond)

// freeAddress is an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestACallThatWasNeverSentDidNotHappen(t *testing.T) {
	tests := map[string][]polynym.Option{
		"waiting":     {polynym.WithTimeout(100 * time.Millisecond)},
		"not waiting": {patience, polynym.WithWaitForReady(false)},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			address := freeAddress(t)
			client := connect(t, address, append(options, quickly)...)
			_, err := client.Registry.CreateUser(t.Context(), createUserRequest())
			wantError(t, err, polynym.ErrUnavailable, "")
			if !strings.HasSuffix(err.Error(), "UNAVAILABLE: the server "+address+" cannot be reached") {
				t.Error(err)
			}
			_, err = client.Resolve(t.Context(), polynym.Handle("joe"))
			wantError(t, err, polynym.ErrUnavailable, "")
		})
	}
}

func TestACallWaitsForTheServer(t *testing.T) {
	address := freeAddress(t)
	attempts := make(chan polynym.Attempt, 10)
	client := connect(t, address, patience, quickly,
		polynym.WithObserver(func(_ context.Context, attempt polynym.Attempt) { attempts <- attempt }))
	done := make(chan error)
	go func() {
		_, err := client.GetUser(t.Context(), "1")
		done <- err
	}()
	startFakeAt(t, address, answers(&polynymv1.GetUserResponse{}))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if attempt := <-attempts; attempt.Number != 1 || attempt.Server != address {
		t.Errorf("%+v", attempt)
	}
}

// refuser is a server that refuses the first streams, and answers the others with NOT_FOUND.
func refuser(t *testing.T, refusals int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = connection.Read(make([]byte, len(http2.ClientPreface)))
		refuse(http2.NewFramer(connection, connection), refusals)
	}()
	return listener.Addr().String()
}

func refuse(framer *http2.Framer, refusals int) {
	var answer bytes.Buffer
	encoder := hpack.NewEncoder(&answer)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		headers, isRequest := frame.(*http2.HeadersFrame)
		if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
			_ = framer.WriteSettingsAck()
		}
		if !isRequest {
			continue
		}
		if refusals--; refusals >= 0 {
			_ = framer.WriteRSTStream(headers.StreamID, http2.ErrCodeRefusedStream)
			continue
		}
		answer.Reset()
		for _, field := range [][2]string{
			{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "5"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: headers.StreamID, BlockFragment: answer.Bytes(), EndHeaders: true, EndStream: true})
	}
}

func TestStreamsThatTheServerRefusesAreNoAttempts(t *testing.T) {
	var last atomic.Int64
	client := connect(t, refuser(t, 9), patience, quickly,
		polynym.WithObserver(func(_ context.Context, attempt polynym.Attempt) {
			last.Store(int64(attempt.Number))
		}))
	_, err := client.GetUser(t.Context(), "1")
	wantError(t, err, polynym.ErrNotFound, "")
	if last.Load() != 1 {
		t.Errorf("%d attempts", last.Load())
	}
}

func TestALastingOutageHasFewRetries(t *testing.T) {
	unavailable := failure(codes.Unavailable, "STORE_UNAVAILABLE")
	reset := status.Error(codes.Internal, "reset") // As the transport reports it.
	missing := failure(codes.NotFound, "USER_NOT_FOUND")
	tests := map[string]struct {
		outage, after error
		reason        string
	}{
		"it ends with successes": {unavailable, nil, polynym.ReasonStoreUnavailable},
		"it ends with errors":    {unavailable, missing, polynym.ReasonStoreUnavailable},
		"streams are reset":      {reset, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { haveOutage(t, test.outage, test.reason, test.after) })
	}
}

// haveOutage calls a server that fails for a reason, and later, when it gives an answer.
func haveOutage(t *testing.T, outage error, reason string, answer error) {
	t.Helper()
	var down atomic.Bool
	down.Store(true)
	fake := startFake(t, func(context.Context, call) (proto.Message, error) {
		if down.Load() {
			return nil, outage
		}
		return &polynymv1.GetUserResponse{}, answer
	})
	client := connect(t, fake.address, patience)
	for range 100 {
		_, err := client.GetUser(t.Context(), "1")
		wantError(t, err, polynym.ErrUnavailable, reason)
	}
	if calls := len(fake.received()); calls > 110 {
		t.Errorf("%d calls", calls)
	}
	down.Store(false)
	for range 70 {
		if _, err := client.GetUser(t.Context(), "1"); status.Code(err) != status.Code(answer) {
			t.Fatal(err)
		}
	}
	down.Store(true)
	before := len(fake.received())
	_, err := client.GetUser(t.Context(), "1")
	wantError(t, err, polynym.ErrUnavailable, reason)
	if calls := len(fake.received()) - before; calls < 2 {
		t.Errorf("%d calls after the outage", calls)
	}
}

func TestCallsLostWithOneConnectionTakeOneToken(t *testing.T) {
	const calls = 32
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.number <= calls {
			<-ctx.Done()
		}
		return &polynymv1.GetUserResponse{}, ctx.Err()
	})
	client := dial(t, fake.address, patience)
	var group waitGroup
	for range calls {
		group.Go(func() {
			if _, err := client.GetUser(t.Context(), "1"); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, func() bool { return len(fake.received()) == calls })
	fake.drop()
	group.Wait()
}

func TestCallsTakeTurnsAmongServers(t *testing.T) {
	first := startFake(t, answers(&polynymv1.GetUserResponse{}))
	second := startFake(t, answers(&polynymv1.GetUserResponse{}))
	client := connect(t, "", patience, quickly, polynym.WithServers(first.address, second.address))
	get := func() {
		t.Helper()
		if _, err := client.GetUser(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(server *fake) func() bool {
		before := len(server.received())
		return func() bool {
			get()
			return len(server.received()) > before
		}
	}
	eventually(t, hears(first))
	eventually(t, hears(second))
	second.stop()
	for range 20 {
		get()
	}
	back := startFakeAt(t, second.address, answers(&polynymv1.GetUserResponse{}))
	eventually(t, hears(back))
	first.stop()
	for range 20 {
		get()
	}
}

func TestARetryPrefersAnotherServer(t *testing.T) {
	var fails atomic.Bool
	failing := startFake(t, func(context.Context, call) (proto.Message, error) {
		if fails.Load() {
			return nil, failure(codes.Unavailable, "STORE_UNAVAILABLE")
		}
		return &polynymv1.GetUserResponse{}, nil
	})
	healthy := startFake(t, answers(&polynymv1.GetUserResponse{}))
	client := connect(t, failing.address+","+healthy.address, patience)
	connected := func() bool {
		_, _ = client.GetUser(t.Context(), "1")
		return len(failing.received()) > 0 && len(healthy.received()) > 0
	}
	eventually(t, connected)
	fails.Store(true)
	for range 3 { // The budget has four retries.
		before := len(failing.received())
		if _, err := client.GetUser(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if calls := len(failing.received()) - before; calls > 1 {
			t.Errorf("%d calls of the server that fails", calls)
		}
	}
}

func TestANameIsAListOfAddresses(t *testing.T) {
	first := startFakeAt(t, "127.0.0.1:0", answers(&polynymv1.GetUserResponse{}))
	_, port, _ := net.SplitHostPort(first.address)
	second := startFakeAt(t, "127.0.0.2:"+port, answers(&polynymv1.GetUserResponse{}))
	third := startFakeAt(t, "127.0.0.3:"+port, answers(&polynymv1.GetUserResponse{}))
	var addresses atomic.Pointer[[]string]
	addresses.Store(&[]string{"127.0.0.1", "127.0.0.2"})
	client := connect(t, "http://users:"+port, patience, quickly,
		polynym.WithLookUp(func(context.Context, string) ([]string, error) {
			if found := *addresses.Load(); found != nil {
				return found, nil
			}
			return nil, errors.New("no such host")
		}))
	get := func() {
		t.Helper()
		if _, err := client.GetUser(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool {
		get()
		return len(first.received()) > 0 && len(second.received()) > 0
	})
	addresses.Store(new([]string)) // The former addresses stay.
	second.stop()
	get()
	addresses.Store(&[]string{"127.0.0.3"})
	first.stop()
	get()
	if len(third.received()) == 0 {
		t.Error("the new address is not used")
	}
}

func TestDialConnectsAtOnce(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.GetUserResponse{}))
	dial(t, freeAddress(t)+","+fake.address)
	for _, hasty := range []bool{true, false} {
		address := freeAddress(t)
		_, err := polynym.Dial(t.Context(), address, quickly,
			polynym.WithTimeout(time.Second), polynym.WithWaitForReady(!hasty))
		wantError(t, err, polynym.ErrUnavailable, "")
		cause := errors.Unwrap(err)
		if !strings.Contains(err.Error(), address) || !strings.Contains(fmt.Sprint(cause), "refused") {
			t.Errorf("%v has the cause %v", err, cause)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := polynym.Dial(ctx, freeAddress(t)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
