package polynym

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// interceptUnary gives every unary call its tenant, deadline, request id, retries and typed errors.
func (c *Client) interceptUnary(
	ctx context.Context, path string, request, response any,
	connection *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if ctx.Value(bareKey{}) != nil {
		return invoker(ctx, path, request, response, connection, options...)
	}
	ctx, cancel := withTimeout(ctx, c.settings.timeout)
	defer cancel()
	request, requestID := complete(request, c.settings.tenant)
	var server peer.Peer
	waiting, telling := grpc.WaitForReady(c.retries.waits), grpc.Peer(&server)
	options = slices.Concat([]grpc.CallOption{waiting}, options, []grpc.CallOption{telling})
	call := func(number int) *Error {
		attempt := avoiding(ctx, server.Addr)
		server = peer.Peer{}
		begun := time.Now()
		err := invoker(attempt, path, request, response, connection, options...)
		failure := c.failure(ctx, err, server.Addr)
		if failure != nil {
			failure.RequestID = requestID
			c.connections.note(failure, server, begun)
		}
		c.observe(ctx, path, number, begun, failure, server.Addr)
		return failure
	}
	return c.retries.run(ctx, methodOf(path), call)
}

// failure is the error of an attempt, or nil if there is none. An attempt has a server once it has
// a stream: before, nothing of it was sent.
func (c *Client) failure(ctx context.Context, err error, server net.Addr) *Error {
	if err == nil {
		return nil
	}
	failure := newError(ctx, err, server != nil)
	switch {
	case failure.fromServer:
	case c.retries.isClosed() && ctx.Err() == nil:
		failure = closedError(failure.sent)
	case failure.Code == codes.DeadlineExceeded && server == nil && !c.isConnected(),
		failure.Code == codes.Unavailable && !failure.sent:
		return c.unreachableError(failure.cause)
	}
	return failure
}

// expired is the error of a call whose context has ended while it waited for others.
func (c *Client) expired(ctx context.Context) *Error { return c.failure(ctx, ctx.Err(), nil) }

func (c *Client) isConnected() bool { return c.connection.GetState() == connectivity.Ready }

// interceptStream gives every stream its tenant and typed errors. A stream waits for a server as
// long as a call does; after that it has no deadline and no retries.
func (c *Client) interceptStream(
	ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, path string,
	streamer grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	patience := c.settings.timeout
	if deadline, has := ctx.Deadline(); has {
		patience = time.Until(deadline)
	}
	waiting := grpc.WaitForReady(c.retries.waits)
	options = slices.Concat([]grpc.CallOption{waiting}, options)
	streaming, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, cancel)
	s := &stream{client: c, path: path, begun: time.Now(), caller: ctx, cancel: cancel}
	opened, err := streamer(streaming, description, connection, path, options...)
	if !timer.Stop() && ctx.Err() == nil && !c.retries.isClosed() {
		err = c.unreachableError(nil)
	}
	if err != nil {
		cancel()
		failure := c.failure(ctx, err, nil)
		c.observe(ctx, path, 1, s.begun, failure, nil)
		return nil, failure
	}
	s.ClientStream, s.many = opened, description.ServerStreams
	// A caller that cancels the stream need not receive the error.
	s.leave = context.AfterFunc(ctx, func() { s.end(s.failure(ctx.Err())) })
	return s, nil
}

type stream struct {
	grpc.ClientStream
	client *Client
	path   string
	begun  time.Time
	caller context.Context // That of the stream itself ends with the stream.
	cancel context.CancelFunc
	many   bool        // The server sends any number of responses.
	leave  func() bool // Stops waiting for the end of the caller's context.
	ended  sync.Once
}

func (s *stream) SendMsg(message any) error {
	filled, _ := complete(message, s.client.settings.tenant)
	err := s.ClientStream.SendMsg(filled)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s.failure(err)
}

func (s *stream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	switch {
	case err == nil && s.many:
		return nil
	case err == nil || errors.Is(err, io.EOF):
		s.finish(nil)
		return err
	}
	failure := s.failure(err)
	s.finish(failure)
	return failure
}

// finish ends a stream that has all of its responses, or an error.
func (s *stream) finish(failure *Error) {
	s.leave()
	s.end(failure)
	s.cancel()
}

// end tells the observer once.
func (s *stream) end(failure *Error) {
	s.ended.Do(func() {
		server := serverOf(s.Context())
		s.client.observe(s.caller, s.path, 1, s.begun, failure, server)
	})
}

// failure is the error of a stream; that for which the client itself has ended it, if it has.
func (s *stream) failure(err error) *Error {
	if ours := new(Error); errors.As(context.Cause(s.caller), &ours) {
		return ours
	}
	return s.client.failure(s.caller, err, serverOf(s.Context()))
}

// serverOf is the address of the server of a stream, or nil.
func serverOf(ctx context.Context) net.Addr {
	if server, ok := peer.FromContext(ctx); ok {
		return server.Addr
	}
	return nil
}

// withTimeout gives a context without a deadline the default time of a call.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// complete returns a request with its tenant and its request id, if it has such fields and they are
// empty. It leaves the caller's message as it is, so that its next use is a new request.
func complete(request any, tenant string) (completed any, requestID string) {
	message, ok := request.(proto.Message)
	if !ok {
		return request, ""
	}
	original := message.ProtoReflect()
	filled := original
	fill := func(name protoreflect.Name, value func() string) string {
		field := original.Descriptor().Fields().ByName(name)
		if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
			return ""
		}
		if present := original.Get(field).String(); present != "" {
			return present
		}
		text := value()
		if text == "" {
			return ""
		}
		if filled == original {
			filled = shallowCopy(original)
		}
		filled.Set(field, protoreflect.ValueOfString(text))
		return text
	}
	fill("tenant", func() string { return tenant })
	requestID = fill("request_id", uuid.NewString)
	return filled.Interface(), requestID
}

func shallowCopy(original protoreflect.Message) protoreflect.Message {
	copied := original.New()
	original.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.Set(field, value)
		return true
	})
	copied.SetUnknown(original.GetUnknown())
	return copied
}

// method has the properties of a method that the rules depend on.
type method struct {
	// changes reports whether the method may change something.
	changes bool
	// idempotent reports whether a repeated call changes nothing more: its request has a request id.
	idempotent bool
}

var methods sync.Map // from paths to methods

// methodOf finds a method by its path in the descriptors of the program. A method without a
// descriptor may change something.
func methodOf(path string) method {
	if known, ok := methods.Load(path); ok {
		return known.(method)
	}
	found := method{changes: true}
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err == nil {
		if rpc, ok := descriptor.(protoreflect.MethodDescriptor); ok {
			options, _ := rpc.Options().(*descriptorpb.MethodOptions)
			level := options.GetIdempotencyLevel()
			found.changes = level != descriptorpb.MethodOptions_NO_SIDE_EFFECTS
			found.idempotent = rpc.Input().Fields().ByName("request_id") != nil ||
				level == descriptorpb.MethodOptions_IDEMPOTENT
		}
	}
	methods.Store(path, found)
	return found
}
