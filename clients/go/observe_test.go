package polynym_test

import (
	"bytes"
	"context"
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
