// Package polynymtest starts servers for tests. A server has an empty store of its own, which is
// removed when it stops.
package polynymtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/polynym/polynym/clients/go"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
	maxLogBytes  = 64 << 10
)

// An Option configures a server.
type Option func(*settings)

type settings struct {
	program   string
	arguments []string
}

// WithProgram runs this program. By default it is that of the environment variable POLYNYM_BIN, or
// `polynym` on the PATH.
func WithProgram(path string) Option {
	return func(s *settings) { s.program = path }
}

// WithArguments adds arguments of `polynym serve`, such as `--credentials` and a file.
func WithArguments(arguments ...string) Option {
	return func(s *settings) { s.arguments = append(s.arguments, arguments...) }
}

// A Server is a running server.
type Server struct {
	// Address is its address for gRPC: HOST:PORT on a loopback address.
	Address string
	// HTTPAddress is its address for HTTP and JSON: HOST:PORT on a loopback address.
	HTTPAddress string

	command *exec.Cmd
	input   io.Closer // The server ends when it is closed, even if by the end of this program.
	log     *limitedLog
	exited  chan struct{}
}

// Start starts a server that stops when the test ends.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	server, err := Launch(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Connect starts a server and returns a client of it. Both end with the test.
func Connect(t testing.TB, options ...polynym.Option) *polynym.Client {
	t.Helper()
	client, err := polynym.Connect(Start(t).Address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Launch starts a server outside of a test, as in TestMain. The caller stops it.
func Launch(options ...Option) (*Server, error) {
	s := settings{program: os.Getenv("POLYNYM_BIN")}
	for _, option := range options {
		option(&s)
	}
	if s.program == "" {
		path, err := exec.LookPath("polynym")
		if err != nil {
			return nil, errors.New("polynymtest: no server: " +
				"install polynym, or set POLYNYM_BIN to its path")
		}
		s.program = path
	}
	arguments := append([]string{"serve", "--ephemeral"}, s.arguments...)
	return launch(exec.Command(s.program, arguments...))
}

func launch(command *exec.Cmd) (*Server, error) {
	server := &Server{command: command, log: &limitedLog{}, exited: make(chan struct{})}
	command.Stderr = server.log
	var err error
	if server.input, err = command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("polynymtest: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("polynymtest: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("polynymtest: %w", err)
	}
	line := make(chan string, 1)
	go server.read(bufio.NewReader(output), line)
	select {
	case first := <-line:
		if !server.parse(first) {
			server.Stop()
			return nil, fmt.Errorf("polynymtest: %s did not start: it printed %q\n%s",
				command, strings.TrimSpace(first), server.log)
		}
		return server, nil
	case <-time.After(startTimeout):
		server.Stop()
		return nil, fmt.Errorf("polynymtest: the server is not ready after %v:\n%s",
			startTimeout, server.log)
	}
}

// read passes on the first line of the output, and reaps the process once the output has ended.
func (s *Server) read(output *bufio.Reader, line chan<- string) {
	first, _ := output.ReadString('\n')
	line <- first
	_, _ = output.WriteTo(io.Discard)
	_ = s.command.Wait()
	close(s.exited)
}

// parse reads the addresses from the server's line.
func (s *Server) parse(line string) bool {
	var addresses struct{ GRPC, HTTP string }
	if err := json.Unmarshal([]byte(line), &addresses); err != nil {
		return false
	}
	s.Address, s.HTTPAddress = addresses.GRPC, addresses.HTTP
	return s.Address != ""
}

// Stop stops the server and waits for its end.
func (s *Server) Stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		_ = s.command.Process.Kill()
		<-s.exited
	}
}

// Log returns the beginning of the server's log.
func (s *Server) Log() string { return s.log.String() }

// limitedLog keeps the first bytes that are written to it.
type limitedLog struct {
	mutex sync.Mutex
	text  []byte
}

func (l *limitedLog) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text = append(l.text, text[:min(len(text), maxLogBytes-len(l.text))]...)
	return len(text), nil
}

func (l *limitedLog) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return string(l.text)
}
