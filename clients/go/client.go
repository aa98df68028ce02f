// Package polynym is a client of Polynym, a user directory: one user has many names, and Resolve
// answers from any of them.
//
// All calls go through the generated stubs of a Client. Each unary call has a deadline, retries,
// and, if it changes something, a request id, so that a retry does not change it twice. Errors have
// the type [*Error] or [*OutcomeUnknownError].
package polynym

import (
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// Version is the version of this package.
const Version = "0.1.0"

// A Client calls one server. It is safe for concurrent use, and one is enough for a process.
type Client struct {
	// Directory looks up users.
	Directory polynymv1.DirectoryServiceClient
	// Registry creates and changes users.
	Registry polynymv1.RegistryServiceClient
	// Inbox sends and lists notices.
	Inbox polynymv1.InboxServiceClient
	// Admin administers the directory.
	Admin polynymv1.AdminServiceClient

	connection  *grpc.ClientConn
	connections connections
	settings    settings
	batcher     batcher
}

// Connect returns a client of the server at `https://HOST:PORT`, or at `http://HOST:PORT` in plain
// text. `HOST:PORT` without a scheme is plain text for a loopback host, and TLS for any other. An
// empty server is that of the environment variable POLYNYM_SERVER, or http://127.0.0.1:7171.
//
// Connect does not wait for the connection: calls do.
func Connect(server string, options ...Option) (*Client, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	address, err := parseAddress(firstNonEmpty(server, os.Getenv("POLYNYM_SERVER"), defaultServer))
	if err != nil {
		return nil, err
	}
	client := &Client{settings: settings}
	dialOptions, err := client.dialOptions(address)
	if err != nil {
		return nil, err
	}
	client.connection, err = grpc.NewClient(address.target(), dialOptions...)
	if err != nil {
		return nil, fmt.Errorf("polynym: %w", err)
	}
	client.Directory = polynymv1.NewDirectoryServiceClient(client.connection)
	client.Registry = polynymv1.NewRegistryServiceClient(client.connection)
	client.Inbox = polynymv1.NewInboxServiceClient(client.connection)
	client.Admin = polynymv1.NewAdminServiceClient(client.connection)
	client.batcher.directory = client.Directory
	client.batcher.stalledAfter = settings.stalledAfter
	return client, nil
}

// Connection returns the connection, for the stubs of other services. Their calls follow the same
// rules.
func (c *Client) Connection() grpc.ClientConnInterface { return c.connection }

// Close ends the connection. Open calls fail.
func (c *Client) Close() error { return c.connection.Close() }

func (c *Client) dialOptions(address address) ([]grpc.DialOption, error) {
	security, err := c.settings.transportCredentials(address)
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(heedful{security, &c.connections}),
		grpc.WithKeepaliveParams(pings),
		grpc.WithUserAgent("polynym-go/" + Version),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
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
		if !address.tls && !isLoopback(address.host) && !c.settings.insecure {
			return nil, fmt.Errorf("polynym: a token over plain text to %s: "+
				"use https://, or WithInsecure if nobody else can read the traffic", address.host)
		}
		options = append(options,
			grpc.WithPerRPCCredentials(bearer{token: token, secure: address.tls}))
	}
	return append(options, c.settings.dialOptions...), nil
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
