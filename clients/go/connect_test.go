package polynym_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func TestAddresses(t *testing.T) {
	tests := []struct{ server, target, fault string }{
		{"http://127.0.0.1:7171", "plain 127.0.0.1:7171", ""},
		{"https://users:7171", "TLS users:7171", ""},
		{"https://users", "TLS users:443", ""},
		{"http://users/", "plain users:80", ""},
		{"localhost:7171", "plain localhost:7171", ""},
		{"127.9.9.9:1", "plain 127.9.9.9:1", ""},
		{"[::1]:7171", "plain [::1]:7171", ""},
		{"users:7171", "TLS users:7171", ""},
		{"[2001:db8::1]:7171", "TLS [2001:db8::1]:7171", ""},
		{"https://a:1, https://b:2", "TLS a:1 b:2", ""},
		{"https://a:1,b:2", "TLS a:1 b:2", ""},
		{"https://a:1,http://b:2", "", "the servers mix TLS and plain text"},
		{"https://a:1,", "", "expected https://HOST:PORT"},
		{"users", "", "expected https://HOST:PORT or HOST:PORT"},
		{":7171", "", "expected https://HOST:PORT or HOST:PORT"},
		{"ftp://users:7171", "", "the scheme must be http or https"},
		{"https://users/path", "", "expected https://HOST:PORT"},
		{"https://:7171", "", "expected https://HOST:PORT"},
		{"https://secret@users:7171", "", "WithToken"},
		{"joe:secret@users:7171", "", "WithToken"},
		{"http://users:x", "", `from 1 to 65535, not "x"`},
		{"127.0.0.1:port", "", `from 1 to 65535, not "port"`},
		{":99999", "", `from 1 to 65535, not "99999"`},
		{"[::1]:0", "", `from 1 to 65535, not "0"`},
		{"users:", "", `from 1 to 65535, not ""`},
	}
	for _, test := range tests {
		target, err := polynym.Servers(test.server)
		if target != test.target || (err == nil) != (test.fault == "") {
			t.Errorf("%s: %s, %v", test.server, target, err)
		}
		if err != nil && (!strings.Contains(err.Error(), test.fault) ||
			strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", test.server, err)
		}
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty")
	writeFile(t, empty, "\n")
	tests := []struct {
		server  string
		options []polynym.Option
		fault   string
	}{
		{"http://users:7171", []polynym.Option{polynym.WithToken("t")}, "WithInsecure"},
		{"", []polynym.Option{polynym.WithToken("a b")}, "visible ASCII"},
		{"", []polynym.Option{polynym.WithToken("a"), polynym.WithTokenFile(empty)}, "exclude"},
		{"", []polynym.Option{polynym.WithTokenFile(empty)}, "is empty"},
		{"", []polynym.Option{polynym.WithTokenFile(folder + "/none")}, "no such file"},
		{"", []polynym.Option{polynym.WithTimeout(0)}, "timeout"},
		{"", []polynym.Option{polynym.WithTimeout(-time.Second)}, "timeout"},
		{"a:1", []polynym.Option{polynym.WithServers("b:1")}, "given twice"},
		{"", []polynym.Option{polynym.WithServers()}, "the list of servers is empty"},
		{"", []polynym.Option{polynym.WithServers("")}, "expected https://HOST:PORT"},
		{"", []polynym.Option{polynym.WithMaxAttempts(0)}, "attempt"},
		{"", []polynym.Option{polynym.WithCA(empty)}, "need https://"},
		{"https://users:7171", []polynym.Option{polynym.WithCA(empty)}, "no certificate"},
		{"https://users:7171", []polynym.Option{polynym.WithCertificate(empty, "")}, "its key"},
		{"https://users:7171", []polynym.Option{polynym.WithCertificate(empty, empty)}, "client certificate"},
	}
	for _, test := range tests {
		_, err := polynym.Connect(test.server, test.options...)
		if err == nil || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("want %q, got %v", test.fault, err)
		}
	}
}

// TestATokenOverPlainText reaches the server by 0.0.0.0, which is no loopback address.
func TestATokenOverPlainText(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.GetUserResponse{}))
	address := "http://" + strings.Replace(fake.address, "127.0.0.1", "0.0.0.0", 1)
	client := connect(t, address, polynym.WithToken("secret"), polynym.WithInsecure())
	if _, err := client.GetUser(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if got := fake.received()[0].headers.Get("authorization"); got[0] != "Bearer secret" {
		t.Errorf("authorization is %q", got)
	}
}

func TestATokenFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, "first\n")
	file, err := polynym.OpenTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		after   time.Duration // Of the clock of the file.
		content string
		want    string
	}{
		{0, "second\n", "first"}, // A check was made less than a second ago.
		{time.Second, "", "second"},
		{time.Second, "not a token\n", "second"},
		{time.Second, "-", "second"}, // The file is missing.
		{time.Second, "third", "third"},
	}
	for i, step := range steps {
		switch step.content {
		case "":
		case "-":
			_ = os.Remove(path)
		default:
			writeFile(t, path, step.content)
		}
		file.Age(step.after)
		if got := file.Current(); got != step.want {
			t.Errorf("step %d: %q", i, got)
		}
	}
}

// writeFile replaces a file by another, as tools that distribute secrets do.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	err := os.WriteFile(path+".new", []byte(content), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheEnvironment(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.GetUserResponse{}))
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, "from-file")
	t.Setenv("POLYNYM_SERVER", "http://"+fake.address)
	t.Setenv("POLYNYM_TOKEN_FILE", path)
	if _, err := connect(t, "").GetUser(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if got := fake.received()[0].headers.Get("authorization"); got[0] != "Bearer from-file" {
		t.Errorf("authorization is %q", got)
	}
	t.Setenv("POLYNYM_CA", path)
	if _, err := polynym.Connect("https://users:7171"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

func TestTwoDeadlinesInARowOpenANewConnection(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.ResolveIdentityResponse{}))
	client := connect(t, fake.address)
	resolve := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := client.Directory.ResolveIdentity(ctx, &polynymv1.ResolveIdentityRequest{})
		return err
	}
	if err := resolve(time.Minute); err != nil {
		t.Fatal(err)
	}
	fake.freeze()
	for range 2 {
		wantError(t, resolve(700*time.Millisecond), polynym.ErrDeadlineExceeded, "")
	}
	// Sooner than by a ping.
	if err := resolve(4 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// The server is slow, but its connection is alive: it answers other calls.
func TestDeadlinesBesideAnswersKeepTheConnection(t *testing.T) {
	fake := startFake(t, func(ctx context.Context, c call) (proto.Message, error) {
		if c.method == "ResolveIdentity" {
			<-ctx.Done()
		}
		return &polynymv1.GetUserResponse{}, ctx.Err()
	})
	client := connect(t, fake.address, polynym.WithTimeout(time.Second))
	for range 3 {
		_, err := client.Directory.ResolveIdentity(t.Context(), &polynymv1.ResolveIdentityRequest{})
		wantError(t, err, polynym.ErrDeadlineExceeded, "")
		if _, err := client.Directory.GetUser(t.Context(), &polynymv1.GetUserRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	fake.mutex.Lock()
	defer fake.mutex.Unlock()
	if len(fake.connections) != 1 {
		t.Errorf("%d connections", len(fake.connections))
	}
}
