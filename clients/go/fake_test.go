package polynym_test

import (
	"context"
	"net"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// call is what the fake server has received of a call.
type call struct {
	number  int // 1 for the first call.
	method  string
	request proto.Message
	headers metadata.MD
}

// fake is a server whose answers a test chooses. Errors in its answers are as those of a server.
type fake struct {
	address string
	answer  func(ctx context.Context, c call) (proto.Message, error)
	watch   func(c call, stream grpc.ServerStream) error
	stop    func() // Ends it, as a crash would.

	mutex       sync.Mutex
	calls       []call
	connections []*freezable
}

// startFake starts a fake server that stops with the test.
func startFake(
	t testing.TB, answer func(ctx context.Context, c call) (proto.Message, error),
) *fake {
	t.Helper()
	return startFakeAt(t, "127.0.0.1:0", answer)
}

// startFakeAt starts a fake server at an address.
func startFakeAt(
	t testing.TB, address string, answer func(ctx context.Context, c call) (proto.Message, error),
) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{address: listener.Addr().String(), answer: answer}
	server := grpc.NewServer(grpc.UnaryInterceptor(f.unary), grpc.StreamInterceptor(f.stream))
	polynymv1.RegisterDirectoryServiceServer(server, polynymv1.UnimplementedDirectoryServiceServer{})
	polynymv1.RegisterRegistryServiceServer(server, polynymv1.UnimplementedRegistryServiceServer{})
	polynymv1.RegisterInboxServiceServer(server, polynymv1.UnimplementedInboxServiceServer{})
	go server.Serve(keepingListener{listener, f})
	f.stop = server.Stop
	t.Cleanup(f.stop)
	return f
}

func (f *fake) record(ctx context.Context, fullMethod string, request proto.Message) call {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	headers, _ := metadata.FromIncomingContext(ctx)
	received := call{len(f.calls) + 1, path.Base(fullMethod), request, headers}
	f.calls = append(f.calls, received)
	return received
}

func (f *fake) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler,
) (any, error) {
	return f.answer(ctx, f.record(ctx, info.FullMethod, request.(proto.Message)))
}

// stream records a watch, and answers it by `watch`, or else with the error of `answer`.
func (f *fake) stream(_ any, s grpc.ServerStream, info *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
	request := new(polynymv1.WatchRequest)
	if err := s.RecvMsg(request); err != nil {
		return err
	}
	received := f.record(s.Context(), info.FullMethod, request)
	if f.watch != nil {
		return f.watch(received, s)
	}
	_, err := f.answer(s.Context(), received)
	return err
}

// received returns all calls so far.
func (f *fake) received() []call {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]call(nil), f.calls...)
}

// drop ends all connections, and with them the calls that are under way.
func (f *fake) drop() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, connection := range f.connections {
		_ = connection.Close()
	}
	f.connections = nil
}

// lose drops the connection of a call, so that its answer does not arrive.
func (f *fake) lose(ctx context.Context) (proto.Message, error) {
	f.drop()
	<-ctx.Done()
	return nil, ctx.Err()
}

// freeze silences the open connections: they hear nothing more, and stay open.
func (f *fake) freeze() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, connection := range f.connections {
		connection.frozen.Store(true)
	}
}

// freezable is a connection that drops what arrives once it is frozen.
type freezable struct {
	net.Conn
	frozen atomic.Bool
}

func (c *freezable) Read(buffer []byte) (int, error) {
	length, err := c.Conn.Read(buffer)
	for err == nil && c.frozen.Load() {
		length, err = c.Conn.Read(buffer)
	}
	return length, err
}

type keepingListener struct {
	net.Listener
	fake *fake
}

func (l keepingListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	kept := &freezable{Conn: connection}
	l.fake.mutex.Lock()
	defer l.fake.mutex.Unlock()
	l.fake.connections = append(l.fake.connections, kept)
	return kept, nil
}

// failure is an error as the server makes it.
func failure(code codes.Code, reason string, details ...protoadapt.MessageV1) error {
	return failureAbout(code, reason, nil, details...)
}

// failureAbout is an error with metadata.
func failureAbout(
	code codes.Code, reason string, about map[string]string, details ...protoadapt.MessageV1,
) error {
	info := &errdetails.ErrorInfo{Domain: "polynym", Reason: reason, Metadata: about}
	failed, err := status.New(code, "a text").WithDetails(append(details, info)...)
	if err != nil {
		panic(err)
	}
	return failed.Err()
}

// retryAfter is the detail that asks for a delay.
func retryAfter(delay time.Duration) protoadapt.MessageV1 {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}
}
