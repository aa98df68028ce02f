package polynym

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

const (
	// defaultWatchSilence is how long a watch waits for a response: the server sends one every 15
	// seconds.
	defaultWatchSilence = 45 * time.Second
	// maxWatchPause is the longest pause before a watch connects again.
	maxWatchPause = 10 * time.Second
)

// Watch returns the events of a tenant as they are committed, and heartbeats: a response without an
// event. The first response is a heartbeat; changes that are acknowledged after it are among the
// events. To resume later, keep the resume token of the last response, and pass it in the request.
//
// A watch lasts until its context ends or the loop does. It connects again and resumes by itself
// when the connection is lost or the server ends it; only before its first response it fails as a
// call does: if no server can be reached, or after the client's number of attempts. Other errors
// end the sequence, such as RESUME_EXPIRED. An event that is repeated after a resume is left out.
func (c *Client) Watch(
	ctx context.Context, request *polynymv1.WatchRequest,
) iter.Seq2[*polynymv1.WatchResponse, error] {
	return func(yield func(*polynymv1.WatchResponse, error) bool) {
		watch := watcher{client: c, request: proto.CloneOf(request), yield: yield}
		watch.run(ctx)
	}
}

// watcher is one watch with all of its streams. Its request has the last token.
type watcher struct {
	client    *Client
	request   *polynymv1.WatchRequest
	yield     func(*polynymv1.WatchResponse, error) bool
	begun     bool     // It has had a response.
	failures  int      // How many streams have failed since the last response.
	attempts  int      // How many have failed that a server has seen.
	lastEvent string   // The id of the last event.
	failed    net.Addr // The server of the last stream that failed.
}

func (w *watcher) run(ctx context.Context) {
	rules := &w.client.retries
	patience := time.Now().Add(w.client.settings.timeout)
	for {
		failure := w.stream(ctx)
		if failure == nil {
			return // The caller has left the loop.
		}
		w.failures++
		if !failure.unreachable {
			w.attempts++
		}
		if !failure.retryable(method{}) || !w.begun && !w.mayBegin(failure, patience) {
			w.yield(nil, failure)
			return
		}
		if !rules.pause(ctx, w.delay(failure)) {
			w.yield(nil, rules.interrupted(ctx, failure))
			return
		}
	}
}

// mayBegin reports whether a watch without a response may try again, by the rules of a call.
func (w *watcher) mayBegin(failure *Error, patience time.Time) bool {
	rules := &w.client.retries
	if failure.unreachable {
		return rules.waits && time.Now().Before(patience)
	}
	return w.attempts < rules.maxAttempts
}

// stream receives one stream until it fails. It returns nil if the caller has left the loop.
func (w *watcher) stream(ctx context.Context) *Error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := localError(codes.Unavailable, "the watch was silent for too long")
	patience := w.client.settings.watchSilence
	silence := time.AfterFunc(patience, func() { cancel(silent) })
	defer silence.Stop()
	responses, err := w.client.Directory.Watch(avoiding(ctx, w.failed), w.request)
	if err != nil {
		return w.failure(ctx, err, nil, silent)
	}
	resumed := w.begun
	for {
		silence.Reset(patience)
		response, err := responses.Recv()
		silence.Stop()
		if err != nil {
			return w.failure(ctx, err, serverOf(responses.Context()), silent)
		}
		w.begun, w.failures = true, 0
		w.request.ResumeToken = response.GetResumeToken()
		event := response.GetEvent()
		repeated := event != nil && resumed && event.GetEventId() == w.lastEvent
		if event != nil {
			resumed, w.lastEvent = false, event.GetEventId()
		}
		if !repeated && !w.yield(response, nil) {
			return nil
		}
	}
}

// delay is the pause before the next stream: at most twice as long as the one before.
func (w *watcher) delay(failure *Error) time.Duration {
	if failure.RetryAfter > 0 {
		return delay(w.failures, failure.RetryAfter)
	}
	return rand.N(min(100*time.Millisecond<<min(w.failures, 10), maxWatchPause))
}

// failure is the error of a stream. The end of a stream without a status is a lost connection. A
// connection that was silent is ended: a new stream on a dead one would be as silent.
func (w *watcher) failure(ctx context.Context, err error, server net.Addr, silent *Error) *Error {
	w.failed = server
	if context.Cause(ctx) == silent {
		if server != nil {
			w.client.connections.end(server)
		}
		return silent
	}
	if errors.Is(err, io.EOF) {
		return localError(codes.Unavailable, "the server ended the watch")
	}
	return w.client.failure(ctx, err, server)
}

// TypeOf is the kind of an event's change.
func TypeOf(event *polynymv1.Event) polynymv1.EventType {
	message := event.ProtoReflect()
	change := message.WhichOneof(message.Descriptor().Oneofs().ByName("change"))
	if change == nil {
		return polynymv1.EventType_EVENT_TYPE_UNSPECIFIED
	}
	return polynymv1.EventType(change.Number())
}
