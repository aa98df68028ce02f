// Package polynym is a client of Polynym, a user directory: one user has many names, and Resolve
// answers from any of them.
//
// All calls go through the generated stubs of a Client. Each unary call has a deadline, retries,
// and, if it changes something, a request id, so that a retry does not change it twice. Errors have
// the type [*Error] or [*OutcomeUnknownError].
package polynym

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// Version is the version of this package.
const Version = "0.2.0"

// A Client calls one server, or several that have the same store. It is safe for concurrent use,
// and one is enough for a process.
type Client struct {
	// Directory looks up users.
	Directory polynymv1.DirectoryServiceClient
	// Registry creates and changes users.
	Registry polynymv1.RegistryServiceClient
	// Inbox sends and lists notices.
	Inbox polynymv1.InboxServiceClient
	// Admin administers the directory.
	Admin polynymv1.AdminServiceClient

	servers     []address
	connection  *grpc.ClientConn
	connections connections
	settings    settings
	retries     retries
	batcher     batcher
	close       sync.Once
}

// Connect returns a client of the server at `https://HOST:PORT`, or at `http://HOST:PORT` in plain
// text. `HOST:PORT` without a scheme is plain text for a loopback host, and TLS for any other.
// Several servers are separated by commas: calls take turns among them. An empty server is that of
// [WithServers], of the environment variable POLYNYM_SERVER, or http://127.0.0.1:7171.
//
// Connect does not wait for the connection: calls do. [Dial] does.
func Connect(server string, options ...Option) (*Client, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	list, err := settings.serverList(server)
	if err != nil {
		return nil, err
	}
	servers, err := parseServers(list)
	if err != nil {
		return nil, err
	}
	client := &Client{settings: settings, servers: servers}
	client.retries = retries{
		maxAttempts: settings.maxAttempts, waits: !settings.failFast, backoff: settings.backoff,
		closed: make(chan struct{}),
	}
	client.batcher = newBatcher(client)
	hosts := &hostResolver{servers, settings.backoff, settings.lookUp}
	dialOptions, err := client.dialOptions(hosts)
	if err != nil {
		return nil, err
	}
	client.connection, err = grpc.NewClient(hosts.target(), dialOptions...)
	if err != nil {
		return nil, fmt.Errorf("polynym: %w", err)
	}
	client.Directory = polynymv1.NewDirectoryServiceClient(client.connection)
	client.Registry = polynymv1.NewRegistryServiceClient(client.connection)
	client.Inbox = polynymv1.NewInboxServiceClient(client.connection)
	client.Admin = polynymv1.NewAdminServiceClient(client.connection)
	return client, nil
}

// Dial connects as [Connect], and waits until a server is connected. It fails with [ErrUnavailable]
// if none can be reached before the context ends or, if that has no deadline, within the client's
// timeout. That error wraps the one with which the last connection has failed.
func Dial(ctx context.Context, server string, options ...Option) (*Client, error) {
	client, err := Connect(server, options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withTimeout(ctx, client.settings.timeout)
	defer cancel()
	client.connection.Connect()
	for state := client.connection.GetState(); state != connectivity.Ready; {
		failed := state == connectivity.TransientFailure && client.settings.failFast
		if failed || !client.connection.WaitForStateChange(ctx, state) {
			err := client.failure(ctx, ctx.Err(), nil)
			if err == nil || err.unreachable {
				err = client.unreachableError(client.connectionError())
			}
			_ = client.Close()
			return nil, err
		}
		state = client.connection.GetState()
	}
	return client, nil
}

type bareKey struct{}

// connectionError returns the error with which the last connection has failed, or nil. gRPC tells
// it only to a call: one that does not wait, and is not sent.
func (c *Client) connectionError() error {
	if c.connection.GetState() != connectivity.TransientFailure {
		return nil
	}
	bare := context.WithValue(context.Background(), bareKey{}, true)
	ctx, cancel := context.WithTimeout(bare, time.Second)
	defer cancel()
	err := c.connection.Invoke(ctx, "/", &polynymv1.GetUserRequest{}, &polynymv1.GetUserResponse{})
	if status.Code(err) != codes.Unavailable {
		return nil // There is a connection again.
	}
	return err
}

// Connection returns the connection, for the stubs of other services. Their calls follow the same
// rules.
func (c *Client) Connection() grpc.ClientConnInterface { return c.connection }

// Close ends the connections. Open calls and later ones fail with [ErrClosed]; an open change may
// have happened, and fails with [ErrOutcomeUnknown].
func (c *Client) Close() error {
	var err error
	c.close.Do(func() {
		close(c.retries.closed)
		err = c.connection.Close()
	})
	return err
}

func (c *Client) dialOptions(hosts *hostResolver) ([]grpc.DialOption, error) {
	servers := hosts.servers
	security, err := c.settings.transportCredentials(servers[0])
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithResolvers(hosts),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + inTurns + `": {}}]}`),
		grpc.WithTransportCredentials(trackingCredentials{security, &c.connections}),
		grpc.WithKeepaliveParams(pings),
		grpc.WithUserAgent("polynym-go/" + Version),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: grpcbackoff.Config{
				BaseDelay: c.settings.backoff.first, MaxDelay: c.settings.backoff.longest,
				Multiplier: 2, Jitter: 0.2,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(c.interceptUnary),
		grpc.WithChainStreamInterceptor(c.interceptStream),
	}
	token, err := c.settings.credential()
	if err != nil {
		return nil, err
	}
	if token != nil {
		if err := c.settings.mayCarryTokens(servers); err != nil {
			return nil, err
		}
		options = append(options,
			grpc.WithPerRPCCredentials(bearer{token: token, secure: servers[0].tls}))
	}
	return append(options, c.settings.dialOptions...), nil
}

// mayCarryTokens refuses tokens that others could read.
func (s *settings) mayCarryTokens(servers []address) error {
	for _, server := range servers {
		if !server.tls && !isLoopback(server.host) && !s.insecure {
			return fmt.Errorf("polynym: a token over plain text to %s: "+
				"use https://, or WithInsecure if nobody else can read the traffic", server.host)
		}
	}
	return nil
}

func (s *settings) transportCredentials(address address) (credentials.TransportCredentials, error) {
	if address.tls {
		config, err := s.tlsConfig()
		if err != nil {
			return nil, err
		}
		return credentials.NewTLS(config), nil
	}
	if s.ca != "" || s.certificate != "" {
		return nil, errors.New("polynym: certificates need https://, but the server is plain text")
	}
	return insecure.NewCredentials(), nil
}
