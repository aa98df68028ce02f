package polynym

import (
	"context"
	"time"
)

// MaxInFlight is the number of requests of a group before look-ups wait.
const MaxInFlight = maxInFlight

// WithStalledAfter sets how long a request holds up the others of its group.
func WithStalledAfter(duration time.Duration) Option {
	return func(s *settings) { s.stalledAfter = duration }
}

// WithWatchSilence sets how long a watch waits for a response.
func WithWatchSilence(duration time.Duration) Option {
	return func(s *settings) { s.watchSilence = duration }
}

// WithLookUp resolves the names of servers by a function.
func WithLookUp(lookUp func(ctx context.Context, host string) ([]string, error)) Option {
	return func(s *settings) { s.lookUp = lookUp }
}

// MaxAlone is the number of look-ups that go alone at once after a shared request.
const MaxAlone = maxAlone

// Waiting returns how many look-ups wait for a batch.
func (c *Client) Waiting() int {
	c.batcher.mutex.Lock()
	defer c.batcher.mutex.Unlock()
	waiting := 0
	for _, group := range c.batcher.groups {
		waiting += len(group.waiting) - group.left
	}
	return waiting
}

// Groups returns how many groups of look-ups are under way.
func (c *Client) Groups() int {
	c.batcher.mutex.Lock()
	defer c.batcher.mutex.Unlock()
	return len(c.batcher.groups)
}

// Servers returns where a list of addresses leads, and how.
func Servers(list string) (string, error) {
	servers, err := parseServers(list)
	if err != nil {
		return "", err
	}
	how := "plain"
	if servers[0].tls {
		how = "TLS"
	}
	for _, server := range servers {
		how += " " + server.String()
	}
	return how, nil
}

// TokenFile is a token file whose time tests choose.
type TokenFile struct{ *tokenFile }

// OpenTokenFile opens a token file.
func OpenTokenFile(path string) (TokenFile, error) {
	file, err := openTokenFile(path)
	return TokenFile{file}, err
}

// Current returns the token.
func (f TokenFile) Current() string { return f.current() }

// Age lets time pass since the last check.
func (f TokenFile) Age(time time.Duration) { f.checked = f.checked.Add(-time) }
