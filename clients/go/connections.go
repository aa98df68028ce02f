package polynym

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
)

const (
	// silentDeadlines is how many calls in a row reach their deadlines on a connection on which the
	// server sends nothing, before the connection is ended.
	silentDeadlines = 2
	// minSilence is how long the server has been silent then, at least: calls may have short
	// deadlines.
	minSilence = time.Second
)

// pings ask a server that is silent while a call is open whether it is still there. They are the
// most frequent ones that gRPC allows.
var pings = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}

// connections are those that are open.
type connections struct {
	mutex sync.Mutex
	open  map[*connection]struct{}
	// lost has, for each server, our address of the last connection whose loss was counted.
	lost map[string]string
	// distrust: the certificate of a server was not accepted, and no connection has opened since.
	distrust bool
}

// connection knows when its server was last heard.
type connection struct {
	net.Conn
	all *connections

	heard     time.Time
	deadlines int // How many calls have reached their deadlines since.
}

func (c *connection) Read(buffer []byte) (int, error) {
	length, err := c.Conn.Read(buffer)
	if length > 0 {
		c.all.mutex.Lock()
		c.heard, c.deadlines = time.Now(), 0
		c.all.mutex.Unlock()
	}
	return length, err
}

func (c *connection) Close() error {
	c.all.mutex.Lock()
	delete(c.all.open, c)
	c.all.mutex.Unlock()
	return c.Conn.Close()
}

// note takes note of what a failed call to a server, sent at a time, tells of its connection.
func (c *connections) note(failure *Error, server peer.Peer, sent time.Time) {
	switch {
	case server.Addr == nil || failure.fromServer:
	case failure.Code == codes.DeadlineExceeded:
		c.expired(server.Addr, sent)
	case failure.Code == codes.Unavailable && failure.sent && server.LocalAddr != nil:
		failure.counted = !c.countLoss(server.LocalAddr, server.Addr)
	}
}

// expired tells of a call to a server that has reached its deadline, sent at a time. The last of
// several during which nothing was heard ends the connection.
func (c *connections) expired(server net.Addr, sent time.Time) {
	c.endIf(server, func(one *connection) bool {
		if one.heard.Before(sent) {
			one.deadlines++
		}
		return one.deadlines >= silentDeadlines && time.Since(one.heard) >= minSilence
	})
}

// end ends the connections to a server. The next call opens a new one.
func (c *connections) end(server net.Addr) {
	c.endIf(server, func(*connection) bool { return true })
}

func (c *connections) endIf(server net.Addr, isSilent func(*connection) bool) {
	var silent []*connection
	c.mutex.Lock()
	for one := range c.open {
		if one.RemoteAddr().String() == server.String() && isSilent(one) {
			silent = append(silent, one)
		}
	}
	c.mutex.Unlock()
	for _, one := range silent {
		_ = one.Close()
	}
}

// add adds a connection that has just been opened.
func (c *connections) add(raw net.Conn) *connection {
	one := &connection{Conn: raw, all: c, heard: time.Now()}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.open == nil {
		c.open, c.lost = make(map[*connection]struct{}), make(map[string]string)
	}
	c.open[one] = struct{}{}
	if server := raw.RemoteAddr().String(); c.lost[server] == raw.LocalAddr().String() {
		delete(c.lost, server) // The address is used again.
	}
	return one
}

// countLoss reports whether a lost call takes a token: of those lost with one connection, the first
// does.
func (c *connections) countLoss(local, server net.Addr) bool {
	ours, theirs := local.String(), server.String()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for one := range c.open {
		if one.LocalAddr().String() == ours && one.RemoteAddr().String() == theirs {
			return true // The call alone was lost.
		}
	}
	if c.lost[theirs] == ours {
		return false
	}
	c.lost[theirs] = ours
	return true
}

// secured tells whether the certificate of a server was accepted.
func (c *connections) secured(err error) {
	var refused *tls.CertificateVerificationError
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.distrust = errors.As(err, &refused)
}

func (c *connections) distrusted() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.distrust
}

// trackingCredentials add the connections that they secure to those that are open.
type trackingCredentials struct {
	credentials.TransportCredentials
	all *connections
}

func (t trackingCredentials) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	one := t.all.add(raw)
	secured, info, err := t.TransportCredentials.ClientHandshake(ctx, authority, one)
	t.all.secured(err)
	if err != nil {
		_ = one.Close()
	}
	return secured, info, err
}

func (t trackingCredentials) Clone() credentials.TransportCredentials {
	return trackingCredentials{t.TransportCredentials.Clone(), t.all}
}
