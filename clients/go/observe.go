package polynym

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// An Attempt is one attempt of a call. A stream is one attempt.
type Attempt struct {
	// Service and Method are what was called, such as `polynym.v1.DirectoryService` and `GetUser`.
	Service, Method string
	// Number is 1 for the first attempt of the call. Those that no server has seen do not count.
	Number int
	// Duration is the time of the attempt: that of a stream until its end.
	Duration time.Duration
	// Code and Reason are those of its failure. OK and empty if it succeeded.
	Code   codes.Code
	Reason string
	// Server is the address of the server. Empty if there was no connection.
	Server string
}

// observe tells the observer of an attempt. An observer that panics fails no call.
func (c *Client) observe(
	ctx context.Context, path string, number int, begun time.Time, failure *Error, server net.Addr,
) {
	if c.settings.observer == nil {
		return
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	seen := Attempt{Service: service, Method: method, Number: number, Duration: time.Since(begun)}
	if failure != nil {
		seen.Code, seen.Reason = failure.Code, failure.Reason
	}
	if server != nil {
		seen.Server = server.String()
	}
	defer func() {
		if fault := recover(); fault != nil {
			slog.ErrorContext(ctx, "polynym: the observer has panicked",
				"panic", fault, "stack", string(debug.Stack()))
		}
	}()
	c.settings.observer(ctx, seen)
}
