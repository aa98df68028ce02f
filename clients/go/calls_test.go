package polynym_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// patience is for tests that count attempts, on machines that are busy.
var patience = polynym.WithTimeout(time.Minute)

// answers fails the first calls, and then succeeds with the response.
func answers(response proto.Message, failures ...error) func(context.Context, call) (proto.Message, error) {
	return func(_ context.Context, c call) (proto.Message, error) {
		if c.number <= len(failures) {
			return nil, failures[c.number-1]
		}
		return response, nil
	}
}

func createUserRequest() *polynymv1.CreateUserRequest {
	return &polynymv1.CreateUserRequest{User: &polynymv1.User{DisplayName: "Joe"}}
}

func TestARetryHasTheSameRequestID(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.CreateUserResponse{},
		failure(codes.Unavailable, "STORE_UNAVAILABLE"), failure(codes.Unknown, "OUTCOME_UNKNOWN")))
	client := connect(t, fake.address, patience, polynym.WithTenant("acme"))
	request := createUserRequest()
	if _, err := client.Registry.CreateUser(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(request, createUserRequest()) {
		t.Errorf("the caller's request became %v", request)
	}
	calls := fake.received()
	if len(calls) != 3 {
		t.Fatalf("%d calls", len(calls))
	}
	first := calls[0].request.(*polynymv1.CreateUserRequest)
	if len(first.GetRequestId()) != 36 || first.GetTenant() != "acme" ||
		first.GetUser().GetDisplayName() != "Joe" {
		t.Errorf("the request is %v", first)
	}
	for _, later := range calls[1:] {
		if !proto.Equal(later.request, first) {
			t.Errorf("the retry is %v", later.request)
		}
	}
}

func TestEachUseOfARequestHasAnIDOfItsOwn(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.CreateUserResponse{}))
	client := connect(t, fake.address)
	request := createUserRequest()
	for range 2 {
		if _, err := client.Registry.CreateUser(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	request.RequestId = "5b0e1b8e-6f3b-4a0c-9a60-0a1b2c3d4e5f"
	if _, err := client.Registry.CreateUser(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	for _, c := range fake.received() {
		ids[c.request.(*polynymv1.CreateUserRequest).GetRequestId()] = true
	}
	if len(ids) != 3 || !ids[request.RequestId] {
		t.Errorf("the ids are %v", ids)
	}
}

func TestHeaders(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.GetUserResponse{}))
	client := connect(t, fake.address, polynym.WithToken("secret"))
	if _, err := client.GetUser(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	headers := fake.received()[0].headers
	if got := headers.Get("authorization"); len(got) != 1 || got[0] != "Bearer secret" {
		t.Errorf("authorization is %q", got)
	}
	if got := headers.Get("user-agent"); !strings.HasPrefix(got[0], "polynym-go/0.2.0 ") {
		t.Errorf("user-agent is %q", got)
	}
}

func TestWhatIsRetried(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		calls int
	}{
		{"unavailable", failure(codes.Unavailable, "RULES_CHANGING"), 3},
		{"with a delay", failure(codes.ResourceExhausted, "OVERLOADED", retryAfter(time.Millisecond)), 3},
		{"without a delay", failure(codes.ResourceExhausted, "LIMIT_EXCEEDED"), 1},
		{"a delay beyond the deadline", failure(codes.ResourceExhausted, "RATE_LIMITED", retryAfter(time.Hour)), 1},
		{"invalid", failure(codes.InvalidArgument, "FIELD_INVALID"), 1},
		{"internal", failure(codes.Internal, "INTERNAL"), 1},
		{"deadline", failure(codes.DeadlineExceeded, "DEADLINE"), 1},
		{"unknown outcome of a look-up", failure(codes.Unknown, "OUTCOME_UNKNOWN"), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fake := startFake(t, answers(nil, test.err, test.err, test.err))
			client := connect(t, fake.address, patience)
			begin := time.Now()
			_, err := client.GetUser(t.Context(), "1")
			if err == nil || len(fake.received()) != test.calls {
				t.Errorf("%v after %d calls", err, len(fake.received()))
			}
			if elapsed := time.Since(begin); elapsed > 30*time.Second {
				t.Errorf("it took %v", elapsed)
			}
		})
	}
}

func TestAttemptsAreConfigurable(t *testing.T) {
	unavailable := failure(codes.Unavailable, "STORE_UNAVAILABLE")
	fake := startFake(t, answers(nil, unavailable, unavailable))
	client := connect(t, fake.address, polynym.WithMaxAttempts(1))
	_, err := client.GetUser(t.Context(), "1")
	wantError(t, err, polynym.ErrUnavailable, "STORE_UNAVAILABLE")
	if calls := len(fake.received()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestDetailsOfAnError(t *testing.T) {
	violation := &errdetails.BadRequest_FieldViolation{Field: "user.identities[0]"}
	bad := &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}}
	fake := startFake(t, answers(nil, failureAbout(codes.AlreadyExists, "IDENTITY_TAKEN",
		map[string]string{"owner": "42"}, bad, retryAfter(time.Minute))))
	client := connect(t, fake.address)
	request := createUserRequest()
	request.RequestId = "5b0e1b8e-6f3b-4a0c-9a60-0a1b2c3d4e5f"
	_, err := client.Registry.CreateUser(t.Context(), request)
	var failed *polynym.Error
	if !errors.As(err, &failed) || !errors.Is(err, polynym.ErrAlreadyExists) {
		t.Fatal(err)
	}
	if failed.Owner != "42" || failed.Field != "user.identities[0]" || failed.Message != "a text" ||
		failed.RetryAfter != time.Minute || failed.RequestID != request.RequestId {
		t.Errorf("%+v", failed)
	}
}

func TestALostAnswerOfALookUpIsRetried(t *testing.T) {
	var fake *fake
	fake = startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.number == 1 {
			return fake.lose(ctx)
		}
		return &polynymv1.GetUserResponse{}, nil
	})
	client := connect(t, fake.address, patience)
	if _, err := client.GetUser(t.Context(), "1"); err != nil {
		t.Error(err)
	}
}

func TestALookUpThatIsLostIsUnavailable(t *testing.T) {
	reset := status.Error(codes.Unknown, "reset")
	fake := startFake(t, answers(nil, reset, reset, reset))
	_, err := connect(t, fake.address, patience).GetUser(t.Context(), "1")
	if failed := wantError(t, err, polynym.ErrUnavailable, ""); status.Code(err) != failed.Code {
		t.Errorf("%v", status.Code(err))
	}
}

// TestLostMutations has the answers of the attempts, of which nil is lost, and the outcome.
func TestLostMutations(t *testing.T) {
	taken := failure(codes.AlreadyExists, "IDENTITY_TAKEN")
	unavailable := failure(codes.Unavailable, "STORE_UNAVAILABLE")
	reset := status.Error(codes.Internal, "reset") // As the transport reports it.
	unread := failure(codes.ResourceExhausted, "ANSWERS_UNREAD")
	tests := []struct {
		name    string
		answers []error
		want    error
	}{
		{"all lost", []error{nil, nil, nil}, polynym.ErrOutcomeUnknown},
		{"settled later", []error{nil, unavailable, taken}, polynym.ErrAlreadyExists},
		{"not settled by a refusal", []error{nil, unavailable, unavailable}, polynym.ErrOutcomeUnknown},
		{"nothing written", []error{unavailable, unavailable, unavailable}, polynym.ErrUnavailable},
		{"reset", []error{reset, taken}, polynym.ErrAlreadyExists},
		{"never an answer of the server", []error{reset, reset, reset}, polynym.ErrOutcomeUnknown},
		{"unread", []error{unread}, polynym.ErrOutcomeUnknown},
		{"deadline", []error{failure(codes.DeadlineExceeded, "DEADLINE")}, polynym.ErrOutcomeUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var fake *fake
			fake = startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
				if answer := test.answers[c.number-1]; answer != nil {
					return nil, answer
				}
				return fake.lose(ctx)
			})
			client := connect(t, fake.address, patience)
			_, err := client.Registry.CreateUser(t.Context(), createUserRequest())
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v", err)
			}
			calls := fake.received()
			if len(calls) != len(test.answers) {
				t.Errorf("%d calls", len(calls))
			}
			var unknown *polynym.OutcomeUnknownError
			if !errors.As(err, &unknown) {
				return
			}
			if unknown.RequestID != calls[0].request.(*polynymv1.CreateUserRequest).GetRequestId() {
				t.Errorf("the request id is %q", unknown.RequestID)
			}
			if errors.Is(err, polynym.ErrUnavailable) || errors.Is(err, polynym.ErrDeadlineExceeded) {
				t.Errorf("%v is of another kind, too", err)
			}
		})
	}
}

func TestAMutationWithoutARequestIDIsNotRepeatedOnceLost(t *testing.T) {
	var fake *fake
	fake = startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.number == 1 {
			return nil, failure(codes.Unavailable, "STORE_UNAVAILABLE")
		}
		return fake.lose(ctx)
	})
	client := connect(t, fake.address, patience)
	_, err := client.Inbox.MarkRead(t.Context(), &polynymv1.MarkReadRequest{UserId: "1"})
	if !errors.Is(err, polynym.ErrOutcomeUnknown) || len(fake.received()) != 2 {
		t.Errorf("%v after %d calls", err, len(fake.received()))
	}
}

func TestDeadlines(t *testing.T) {
	fake := startFake(t, func(ctx context.Context, _ call) (proto.Message, error) {
		deadline, _ := ctx.Deadline()
		if left := time.Until(deadline); left > 2*time.Second {
			t.Errorf("the server has %v", left)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	client := dial(t, fake.address, polynym.WithTimeout(50*time.Millisecond))
	_, err := client.GetUser(t.Context(), "1")
	wantError(t, err, polynym.ErrDeadlineExceeded, "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for _, timeout := range []time.Duration{20 * time.Millisecond, 0, -time.Second} {
		_, err = client.Resolve(t.Context(), polynym.Handle("joe"), polynym.Timeout(timeout))
		wantError(t, err, polynym.ErrDeadlineExceeded, "")
	}
	_, err = client.Registry.CreateUser(t.Context(), createUserRequest())
	if !errors.Is(err, polynym.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestCallsHaveTwoSecondsByDefault(t *testing.T) {
	var left atomic.Int64
	fake := startFake(t, func(ctx context.Context, _ call) (proto.Message, error) {
		if deadline, has := ctx.Deadline(); has {
			left.Store(int64(time.Until(deadline)))
		}
		return &polynymv1.GetUserResponse{}, nil
	})
	client := connect(t, fake.address)
	// A call may take more than half of its time on a busy machine, but not each time.
	eventually(t, func() bool {
		_, err := client.GetUser(t.Context(), "1")
		had := time.Duration(left.Load())
		if had > 2*time.Second {
			t.Fatalf("the server has %v", had)
		}
		return err == nil && had > time.Second
	})
}

func TestACancelledCallEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fake := startFake(t, func(served context.Context, _ call) (proto.Message, error) {
		cancel()
		<-served.Done()
		return nil, served.Err()
	})
	client := connect(t, fake.address)
	_, err := client.GetUser(ctx, "1")
	if !errors.Is(err, context.Canceled) || len(fake.received()) != 1 {
		t.Errorf("%v after %d calls", err, len(fake.received()))
	}
}

func TestStreamsHaveTheTenantAndTypedErrors(t *testing.T) {
	fake := startFake(t, answers(nil, failure(codes.OutOfRange, "RESUME_EXPIRED")))
	client := connect(t, fake.address, polynym.WithTenant("acme"))
	stream, err := client.Directory.Watch(t.Context(), &polynymv1.WatchRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	wantError(t, err, polynym.ErrOutOfRange, "RESUME_EXPIRED")
	if tenant := fake.received()[0].request.(*polynymv1.WatchRequest).GetTenant(); tenant != "acme" {
		t.Errorf("the tenant is %q", tenant)
	}
}
