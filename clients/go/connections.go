package polynym

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const (
	// silentDeadlines is how many calls in a row reach their deadlines on a connection on which the
	// server sends nothing, before the connection is ended.
	silentDeadlines = 2
	// minSilence is how long the server has been silent then, at least: calls may have short deadlines.
	minSilence = time.Second
)

// pings ask a server that is silent while a call is open whether it is still there. They are the
// most frequent ones that gRPC allows.
var pings = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}

// connections are those that are open. They know when the server was last heard.
type connections struct {
	mutex     sync.Mutex
	open      map[*connection]struct{}
	heard     time.Time
	deadlines int // How many calls have reached their deadlines since.
}

// connection tells when something arrives on it.
type connection struct {
	net.Conn
	all *connections
}

func (c *connection) Read(buffer []byte) (int, error) {
	length, err := c.Conn.Read(buffer)
	if length > 0 {
		c.all.mutex.Lock()
		c.all.heard, c.all.deadlines = time.Now(), 0
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

// expired tells of a call that has reached its deadline, sent after a time. The last of several
// during which nothing was heard ends the connections.
func (c *connections) expired(sent time.Time) {
	c.mutex.Lock()
	if c.heard.Before(sent) {
		c.deadlines++
	}
	silent := c.deadlines >= silentDeadlines && time.Since(c.heard) >= minSilence
	c.mutex.Unlock()
	if silent {
		c.end()
	}
}

// end ends the open connections. The next call opens a new one.
func (c *connections) end() {
	c.mutex.Lock()
	open := c.open
	c.open, c.deadlines = nil, 0
	c.mutex.Unlock()
	for one := range open {
		_ = one.Close()
	}
}

// heedful credentials tell of the connections that they secure.
type heedful struct {
	credentials.TransportCredentials
	all *connections
}

func (h heedful) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	one := &connection{Conn: raw, all: h.all}
	h.all.mutex.Lock()
	if h.all.open == nil {
		h.all.open = make(map[*connection]struct{})
	}
	h.all.open[one] = struct{}{}
	h.all.mutex.Unlock()
	secured, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, one)
	if err != nil {
		_ = one.Close()
	}
	return secured, info, err
}

func (h heedful) Clone() credentials.TransportCredentials {
	return heedful{h.TransportCredentials.Clone(), h.all}
}
