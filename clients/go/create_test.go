package polynym_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// losing loses the first answers of each method, which are fewer than the budget of retries allows.
func losing() polynym.Option {
	losses := map[string]int{"CreateUser": 2, methodSingle: 1, methodBatch: 1}
	var mutex sync.Mutex
	lose := func(
		ctx context.Context, method string, request, response any,
		connection *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		err := invoker(ctx, method, request, response, connection, options...)
		mutex.Lock()
		defer mutex.Unlock()
		if left := losses[path.Base(method)]; err == nil && left > 0 {
			losses[path.Base(method)] = left - 1
			err = status.Error(codes.Internal, "lost")
		}
		return err
	}
	return polynym.WithDialOptions(grpc.WithChainUnaryInterceptor(lose))
}

func TestManyCallersGetOrCreateOneUser(t *testing.T) {
	client := connectTenant(t, losing())
	email := polynym.Email("Joe@Example.com")
	wanted := &polynymv1.User{DisplayName: "Joe", Identities: []*polynymv1.Identity{
		{Identifier: polynym.Handle("joe")}}}
	var created atomic.Int64
	var ids [32]string
	var group waitGroup
	for i := range ids {
		group.Go(func() {
			user, isNew, err := client.GetOrCreate(t.Context(), email, wanted)
			if err != nil {
				t.Error(err)
			}
			if isNew {
				created.Add(1)
			}
			ids[i] = user.GetUserId()
		})
	}
	group.Wait()
	if distinct := slices.Compact(ids[:]); len(distinct) != 1 {
		t.Fatalf("%v", distinct)
	}
	if created.Load() != 1 || len(wanted.GetIdentities()) != 1 {
		t.Errorf("%d callers have created %v", created.Load(), wanted)
	}
	history := &polynymv1.ListHistoryRequest{
		User: &polynymv1.ListHistoryRequest_UserId{UserId: ids[0]}}
	for event, err := range client.History(t.Context(), history) {
		if err != nil || polynym.TypeOf(event) != polynymv1.EventType_EVENT_TYPE_USER_CREATED {
			t.Errorf("%v, %v", event, err)
		}
	}
	user, isNew, err := client.GetOrCreate(t.Context(), polynym.Handle("joe"), wanted)
	if err != nil || isNew || len(user.GetIdentities()) != 2 ||
		user.GetIdentities()[0].GetIdentifier().GetEmail() == "" {
		t.Errorf("%v, %v, %v", user, isNew, err)
	}
}

func TestGetOrCreateSaysThatAnotherIdentityIsTaken(t *testing.T) {
	client := connectTenant(t)
	owner := create(t, client, "joe")
	wanted := &polynymv1.User{Identities: []*polynymv1.Identity{{Identifier: polynym.Handle("joe")}}}
	_, _, err := client.GetOrCreate(t.Context(), polynym.Handle("ann"), wanted)
	taken := wantError(t, err, polynym.ErrAlreadyExists, polynym.ReasonIdentityTaken)
	if taken.Owner != owner.GetUserId() {
		t.Errorf("%+v", taken)
	}
	_, _, err = client.GetOrCreate(t.Context(), polynym.Handle("no handle"), nil)
	if !errors.Is(err, polynym.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestGetOrCreateCreatesOnlyForAMissingIdentity(t *testing.T) {
	fake := startFake(t, answers(nil, failure(codes.NotFound, "TENANT_NOT_FOUND")))
	client := connect(t, fake.address, patience)
	_, _, err := client.GetOrCreate(t.Context(), polynym.Handle("joe"), nil)
	wantError(t, err, polynym.ErrNotFound, polynym.ReasonTenantNotFound)
	if calls := len(fake.received()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
