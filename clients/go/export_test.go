package polynym

import "time"

// MaxInFlight is the number of requests of a group before look-ups wait.
const MaxInFlight = maxInFlight

// WithStalledAfter sets how long a request holds up the others of its group.
func WithStalledAfter(duration time.Duration) Option {
	return func(s *settings) { s.stalledAfter = duration }
}

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
