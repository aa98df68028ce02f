package polynym_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// entrances are the ways to call a client.
var entrances = map[string]func(context.Context, *polynym.Client) error{
	"call": func(ctx context.Context, client *polynym.Client) error {
		_, err := client.GetUser(ctx, "1")
		return err
	},
	"resolve": func(ctx context.Context, client *polynym.Client) error {
		_, err := client.Resolve(ctx, polynym.Handle("joe"))
		return err
	},
	"resolve many": func(ctx context.Context, client *polynym.Client) error {
		identifiers := []*polynymv1.Identifier{polynym.Handle("joe"), polynym.Handle("ann")}
		results := client.ResolveMany(ctx, identifiers)
		return errors.Join(results[0].Err, results[1].Err)
	},
	"get or create": func(ctx context.Context, client *polynym.Client) error {
		_, _, err := client.GetOrCreate(ctx, polynym.Handle("joe"), &polynymv1.User{})
		return err
	},
	"pages": func(ctx context.Context, client *polynym.Client) error {
		for _, err := range client.Search(ctx, &polynymv1.SearchUsersRequest{}) {
			return err
		}
		return nil
	},
	"stream": func(ctx context.Context, client *polynym.Client) error {
		stream, err := client.Directory.Watch(ctx, &polynymv1.WatchRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	},
	"watch": func(ctx context.Context, client *polynym.Client) error {
		_, err := watched(ctx, client, &polynymv1.WatchRequest{})
		return err
	},
}

func TestAClosedClientSaysSo(t *testing.T) {
	client := dial(t, server.Address, patience)
	for range 2 {
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range entrances {
		t.Run(name, func(t *testing.T) {
			err := call(t.Context(), client)
			if failed := wantError(t, err, polynym.ErrClosed, ""); failed.Code != codes.Canceled ||
				failed.Message != "the client is closed" || errors.Is(err, context.Canceled) {
				t.Errorf("%+v", failed)
			}
		})
	}
}

func TestCloseEndsOpenCalls(t *testing.T) {
	for name, call := range entrances {
		t.Run(name, func(t *testing.T) {
			fake, client := startHolding(t)
			done := make(chan error)
			go func() { done <- call(t.Context(), client) }()
			eventually(t, func() bool { return len(fake.received()) > 0 })
			_ = client.Close()
			wantError(t, <-done, polynym.ErrClosed, "")
		})
	}
}

// startHolding starts a server that does not answer, and its client.
func startHolding(t *testing.T) (*fake, *polynym.Client) {
	t.Helper()
	fake := startFake(t, func(ctx context.Context, _ call) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return fake, dial(t, fake.address, patience)
}

// TestAChangeThatIsInterruptedHasItsRequestID ends a call in an attempt, and between two of which
// the first is lost.
func TestAChangeThatIsInterruptedHasItsRequestID(t *testing.T) {
	endings := map[string]func(client *polynym.Client, cancel context.CancelFunc){
		"closed":    func(client *polynym.Client, _ context.CancelFunc) { _ = client.Close() },
		"cancelled": func(_ *polynym.Client, cancel context.CancelFunc) { cancel() },
	}
	for name, end := range endings {
		for _, refused := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var client *polynym.Client
			var fake *fake
			fake = startFake(t, func(served context.Context, c call) (proto.Message, error) {
				switch {
				case c.number == 1:
					return fake.lose(served)
				case refused:
					defer end(client, cancel)
					return nil, failure(codes.Unavailable, "STORE_UNAVAILABLE", retryAfter(time.Minute/2))
				}
				end(client, cancel)
				<-served.Done()
				return nil, served.Err()
			})
			client = connect(t, fake.address, patience)
			_, err := client.Registry.CreateUser(ctx, createUserRequest())
			var unknown *polynym.OutcomeUnknownError
			if !errors.As(err, &unknown) || errors.Is(err, polynym.ErrClosed) {
				t.Fatalf("%s: %v", name, err)
			}
			sent := fake.received()[0].request.(*polynymv1.CreateUserRequest).GetRequestId()
			if unknown.RequestID != sent {
				t.Errorf("%s: the request id is %q", name, unknown.RequestID)
			}
		}
	}
}

func TestTextsOfErrorsAreOurs(t *testing.T) {
	_, holding := startHolding(t)
	short, cancelShort := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelShort()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var lossy *fake
	lossy = startFake(t, func(ctx context.Context, _ call) (proto.Message, error) {
		return lossy.lose(ctx)
	})
	losing := connect(t, lossy.address, patience)
	nowhere := freeAddress(t)
	lonely := connect(t, nowhere, quickly)
	tests := map[string]struct {
		ctx    context.Context
		client *polynym.Client
	}{
		"DEADLINE_EXCEEDED: the deadline has passed":                   {short, holding},
		"CANCELLED: the call was cancelled":                            {cancelled, holding},
		"UNAVAILABLE: the connection was lost":                         {t.Context(), losing},
		"UNAVAILABLE: the server " + nowhere + " cannot be reached":    {short, lonely},
		"RESOURCE_EXHAUSTED: the message is too large":                 {t.Context(), largeClient(t)},
		"UNIMPLEMENTED: the answer is not that of a server of Polynym": {t.Context(), otherClient(t, http.StatusNotFound)},
	}
	for text, test := range tests {
		_, err := test.client.GetUser(test.ctx, "1")
		if err == nil || err.Error() != "polynym: "+text {
			t.Errorf("want %s, got %v", text, err)
		}
		if cause := errors.Unwrap(err); cause == nil || strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%v has the cause %v", err, cause)
		}
	}
}

// largeClient is a client of a server whose answers are too large for it.
func largeClient(t *testing.T) *polynym.Client {
	t.Helper()
	user := &polynymv1.User{DisplayName: strings.Repeat("x", 5<<20)}
	fake := startFake(t, answers(&polynymv1.GetUserResponse{User: user}))
	return connect(t, fake.address, patience)
}

// otherClient is a client of a server of other things, which answers with a status of HTTP.
func otherClient(t *testing.T, code int) *polynym.Client {
	t.Helper()
	other := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	other.Config.Protocols = new(http.Protocols)
	other.Config.Protocols.SetUnencryptedHTTP2(true)
	other.Start()
	t.Cleanup(other.Close)
	return connect(t, other.URL, patience)
}

func TestWhatAProxyRefusesDidNotHappen(t *testing.T) {
	tests := map[int]error{
		http.StatusUnauthorized: polynym.ErrUnauthenticated,
		http.StatusForbidden:    polynym.ErrPermissionDenied,
		http.StatusNotFound:     polynym.ErrUnimplemented,
		http.StatusTeapot:       polynym.ErrOutcomeUnknown,
	}
	for code, want := range tests {
		_, err := otherClient(t, code).Registry.CreateUser(t.Context(), createUserRequest())
		if !errors.Is(err, want) {
			t.Errorf("%d: got %v, want %v", code, err, want)
		}
	}
}
