package polynym

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
)

const (
	defaultServer      = "http://127.0.0.1:7171"
	defaultTimeout     = 2 * time.Second
	defaultMaxAttempts = 3
	defaultFirstWait   = 50 * time.Millisecond
	defaultLongestWait = time.Second
)

// An Option configures a client.
type Option func(*settings)

type settings struct {
	token, tokenFile          string
	ca, certificate, key      string
	tenant                    string
	timeout                   time.Duration
	maxAttempts               int
	insecure, withoutBatching bool
	servers                   []string // Nil without WithServers.
	failFast                  bool
	backoff                   backoff
	observer                  func(context.Context, Attempt)
	dialOptions               []grpc.DialOption

	// Only tests change these.
	stalledAfter, watchSilence time.Duration
	lookUp                     func(ctx context.Context, host string) ([]string, error)
}

// WithServers names several servers, each as in [Connect], whose argument is empty then.
func WithServers(servers ...string) Option {
	return func(s *settings) { s.servers = append([]string{}, servers...) }
}

// WithToken sends a token with each call.
func WithToken(token string) Option {
	return func(s *settings) { s.token = token }
}

// WithTokenFile sends the token in a file with each call, and reads the file again when it changes.
// Without it and WithToken, the environment variable POLYNYM_TOKEN_FILE names the file.
func WithTokenFile(path string) Option {
	return func(s *settings) { s.tokenFile = path }
}

// WithCA trusts the authorities of a PEM file instead of those of the environment variable
// POLYNYM_CA or, without it, of the system.
func WithCA(path string) Option {
	return func(s *settings) { s.ca = path }
}

// WithCertificate presents a client certificate: the paths of the certificate and of its key, as
// PEM.
func WithCertificate(certificate, key string) Option {
	return func(s *settings) { s.certificate, s.key = certificate, key }
}

// WithTenant sets the tenant of all unary and server-streaming calls whose request names none.
func WithTenant(tenant string) Option {
	return func(s *settings) { s.tenant = tenant }
}

// WithTimeout sets the time of a unary call with all of its attempts, if its context has no
// deadline: 2 seconds by default.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.timeout = timeout }
}

// WithMaxAttempts sets how often a call is attempted: 3 times by default, and once without retries.
func WithMaxAttempts(attempts int) Option {
	return func(s *settings) { s.maxAttempts = attempts }
}

// WithWaitForReady sets whether calls wait for a connection until their deadlines: they do by
// default, and streams for as long. Otherwise a call fails at once if no server can be reached.
func WithWaitForReady(on bool) Option {
	return func(s *settings) { s.failFast = !on }
}

// WithBackoff sets the waits between attempts to reach a server: the first, and the longest. Each
// is twice as long as the one before. They are 50 ms and 1 s by default.
func WithBackoff(first, longest time.Duration) Option {
	return func(s *settings) { s.backoff = backoff{first, longest} }
}

// WithObserver calls a function after each attempt of each call; a stream is one attempt, which
// ends with it. The function must return soon: the call waits for it. A panic of it fails no call,
// and is logged by slog.
func WithObserver(observe func(context.Context, Attempt)) Option {
	return func(s *settings) { s.observer = observe }
}

// WithInsecure allows a token over plain text to a host beyond loopback. Whoever can read the
// traffic can then use the token.
func WithInsecure() Option {
	return func(s *settings) { s.insecure = true }
}

// WithBatching sets whether concurrent calls of Resolve share requests: on by default.
func WithBatching(on bool) Option {
	return func(s *settings) { s.withoutBatching = !on }
}

// WithDialOptions adds gRPC's own options, such as a stats handler for OpenTelemetry. Chained
// interceptors see each attempt.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.dialOptions = append(s.dialOptions, options...) }
}

func newSettings(options []Option) (settings, error) {
	s := settings{
		timeout: defaultTimeout, maxAttempts: defaultMaxAttempts,
		lookUp:       net.DefaultResolver.LookupHost,
		backoff:      backoff{defaultFirstWait, defaultLongestWait},
		stalledAfter: defaultStalledAfter, watchSilence: defaultWatchSilence,
	}
	for _, option := range options {
		option(&s)
	}
	if s.timeout <= 0 {
		return s, errors.New("polynym: the timeout must be greater than zero")
	}
	if s.maxAttempts < 1 {
		return s, errors.New("polynym: a call needs at least one attempt")
	}
	if s.backoff.first <= 0 || s.backoff.longest < s.backoff.first {
		return s, errors.New("polynym: the waits must be greater than zero, and the first the shortest")
	}
	if s.token != "" && s.tokenFile != "" {
		return s, errors.New("polynym: WithToken and WithTokenFile exclude each other")
	}
	if (s.certificate == "") != (s.key == "") {
		return s, errors.New("polynym: a client certificate needs both its file and its key")
	}
	return s, nil
}

// serverList returns the servers, separated by commas: those of an argument, of WithServers, or of
// the environment.
func (s *settings) serverList(argument string) (string, error) {
	switch {
	case s.servers == nil:
		return firstNonEmpty(argument, os.Getenv("POLYNYM_SERVER"), defaultServer), nil
	case argument != "":
		return "", errors.New("polynym: the servers are given twice: by the argument and by WithServers")
	case len(s.servers) == 0:
		return "", errors.New("polynym: the list of servers is empty")
	}
	return strings.Join(s.servers, ","), nil
}

// credential returns the token of the settings or of the environment, and nil if there is none.
func (s *settings) credential() (func() string, error) {
	if s.token != "" {
		if err := checkToken(s.token); err != nil {
			return nil, fmt.Errorf("polynym: %w", err)
		}
		return func() string { return s.token }, nil
	}
	path := firstNonEmpty(s.tokenFile, os.Getenv("POLYNYM_TOKEN_FILE"))
	if path == "" {
		return nil, nil
	}
	file, err := openTokenFile(path)
	if err != nil {
		return nil, err
	}
	return file.current, nil
}

func (s *settings) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := firstNonEmpty(s.ca, os.Getenv("POLYNYM_CA")); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("polynym: CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("polynym: CA %s: has no certificate in PEM form", path)
		}
	}
	if s.certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
		if err != nil {
			return nil, fmt.Errorf("polynym: client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func firstNonEmpty(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
