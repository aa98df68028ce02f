package polynym_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func TestAnObserverSeesEachAttempt(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.GetUserResponse{},
		failure(codes.Unavailable, "STORE_UNAVAILABLE"), failure(codes.Unavailable, "RULES_CHANGING")))
	type key struct{}
	var seen []polynym.Attempt
	client := connect(t, fake.address, patience,
		polynym.WithObserver(func(ctx context.Context, attempt polynym.Attempt) {
			if ctx.Value(key{}) != true || attempt.Duration <= 0 {
				t.Errorf("%+v", attempt)
			}
			attempt.Duration = 0
			seen = append(seen, attempt)
		}))
	if _, err := client.GetUser(context.WithValue(t.Context(), key{}, true), "1"); err != nil {
		t.Fatal(err)
	}
	attempt := polynym.Attempt{
		Service: "polynym.v1.DirectoryService", Method: "GetUser", Server: fake.address, Number: 1,
		Code: codes.Unavailable, Reason: polynym.ReasonStoreUnavailable}
	want := []polynym.Attempt{attempt, attempt, attempt}
	want[1].Number, want[1].Reason = 2, polynym.ReasonRulesChanging
	want[2].Number, want[2].Reason, want[2].Code = 3, "", codes.OK
	if !slices.Equal(seen, want) {
		t.Errorf("%+v", seen)
	}
}

func TestAnObserverThatPanicsFailsNoCall(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	fake := startFake(t, answers(&polynymv1.GetUserResponse{}))
	client := connect(t, fake.address, patience,
		polynym.WithObserver(func(context.Context, polynym.Attempt) { panic("a fault") }))
	if _, err := client.GetUser(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `panic="a fault"`) {
		t.Errorf("the log is %q", log.String())
	}
}

func TestAnObserverSeesStreams(t *testing.T) {
	fake := startFake(t, answers(nil, failure(codes.OutOfRange, "RESUME_EXPIRED")))
	attempts := make(chan polynym.Attempt, 10)
	observer := polynym.WithObserver(func(_ context.Context, attempt polynym.Attempt) {
		if attempt.Duration <= 0 {
			t.Errorf("%+v", attempt)
		}
		attempt.Duration = 0
		attempts <- attempt
	})
	want := func(method, server, reason string, code codes.Code) {
		t.Helper()
		service := "polynym.v1.AdminService"
		if method == "Watch" {
			service = "polynym.v1.DirectoryService"
		}
		expected := polynym.Attempt{Service: service, Method: method, Number: 1,
			Server: server, Code: code, Reason: reason}
		if seen := <-attempts; seen != expected {
			t.Errorf("%+v", seen)
		}
	}

	// A stream that fails.
	_, err := watched(t.Context(), connect(t, fake.address, patience, observer), &polynymv1.WatchRequest{})
	wantError(t, err, polynym.ErrOutOfRange, "RESUME_EXPIRED")
	want("Watch", fake.address, "RESUME_EXPIRED", codes.OutOfRange)

	// One that ends, and one that the caller leaves.
	client := connectTenant(t, observer)
	<-attempts // The creation of the tenant.
	address := strings.TrimPrefix(server.Address, "http://")
	users, err := client.Admin.ExportUsers(t.Context(), &polynymv1.ExportUsersRequest{})
	for err == nil {
		_, err = users.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	want("ExportUsers", address, "", codes.OK)
	for range client.Watch(t.Context(), &polynymv1.WatchRequest{}) {
		break
	}
	want("Watch", address, "", codes.Canceled)

	// One that no server has seen.
	lonely := connect(t, freeAddress(t), polynym.WithWaitForReady(false), observer)
	_, err = watched(t.Context(), lonely, &polynymv1.WatchRequest{})
	wantError(t, err, polynym.ErrUnavailable, "")
	want("Watch", "", "", codes.Unavailable)
	if len(attempts) > 0 {
		t.Errorf("%+v", <-attempts)
	}
}
