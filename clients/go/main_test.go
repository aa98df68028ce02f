package polynym_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymtest"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// server is the server of all tests that do not need one of their own. Everybody may do all.
var server *polynymtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = polynymtest.Launch(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("POLYNYM_SERVER", server.Address)
	os.Setenv("NO_PROXY", "*")
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

// connect returns a client that is closed with the test.
func connect(t testing.TB, address string, options ...polynym.Option) *polynym.Client {
	t.Helper()
	client, err := polynym.Connect(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// dial returns a client that is connected, and closed with the test.
func dial(t testing.TB, address string, options ...polynym.Option) *polynym.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := polynym.Dial(ctx, address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// create creates a user with handles.
func create(t testing.TB, client *polynym.Client, handles ...string) *polynymv1.User {
	t.Helper()
	user, err := createUser(client, handles...)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func createUser(client *polynym.Client, handles ...string) (*polynymv1.User, error) {
	user := &polynymv1.User{}
	for _, handle := range handles {
		identity := &polynymv1.Identity{Identifier: polynym.Handle(handle)}
		user.Identities = append(user.Identities, identity)
	}
	request := &polynymv1.CreateUserRequest{User: user}
	created, err := client.Registry.CreateUser(context.Background(), request)
	return created.GetUser(), err
}

var tenants atomic.Int64

func newTenant() string { return fmt.Sprint("tests-", tenants.Add(1)) }

// connectTenant returns a client with a new tenant.
func connectTenant(t testing.TB, options ...polynym.Option) *polynym.Client {
	t.Helper()
	options = append([]polynym.Option{patience, polynym.WithTenant(newTenant())}, options...)
	client := connect(t, server.Address, options...)
	request := &polynymv1.UpdateTenantRequest{Policies: &polynymv1.Policies{}}
	if _, err := client.Admin.UpdateTenant(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	return client
}

// waitGroup is as that of later versions of Go.
type waitGroup struct{ sync.WaitGroup }

func (g *waitGroup) Go(run func()) {
	g.Add(1)
	go func() {
		defer g.Done()
		run()
	}()
}

func wantError(t testing.TB, err, kind error, reason string) *polynym.Error {
	t.Helper()
	var failure *polynym.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want %v", err, kind)
	}
	if !errors.Is(err, kind) || failure.Reason != reason {
		t.Fatalf("got %v with reason %q, want %v with reason %q", err, failure.Reason, kind, reason)
	}
	return failure
}

// TestThePageHasTheExample compares README.md with the example that runs.
func TestThePageHasTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "func Example() {\n")
	body, _, found := strings.Cut(body, "\t// Output:")
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
	if !found || !strings.Contains(string(page), "```go"+body+"```") {
		t.Errorf("README.md does not have%s", body)
	}
}
