package polynym

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/resolver"
)

const (
	// inTurns is the name of the policy by which calls take turns among the servers.
	inTurns = "polynym_in_turns"
	// resolveTimeout and resolveInterval limit how long, and how often, a name is resolved.
	resolveTimeout  = 5 * time.Second
	resolveInterval = time.Second
)

// hostResolver resolves the names of the servers to all of their addresses. It resolves a name anew
// when a connection is lost.
type hostResolver struct {
	servers []address
	backoff backoff
	lookUp  func(ctx context.Context, host string) ([]string, error)
}

// Scheme is that of the target. If the environment has an HTTP proxy, gRPC leaves names of the
// scheme dns to it; but it knows only one.
func (h *hostResolver) Scheme() string {
	if len(h.servers) == 1 {
		return "dns"
	}
	return "polynym"
}

// target names a server for the rules of HTTP proxies.
func (h *hostResolver) target() string { return h.Scheme() + ":///" + h.servers[0].String() }

func (h *hostResolver) Build(
	_ resolver.Target, connection resolver.ClientConn, _ resolver.BuildOptions,
) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &resolution{
		hostResolver: h, connection: connection, cancel: cancel,
		found: make([][]resolver.Address, len(h.servers)),
	}
	for range h.servers {
		r.again = append(r.again, make(chan struct{}, 1))
	}
	for i := range h.servers {
		go r.run(ctx, i)
	}
	return r, nil
}

// resolution resolves the names for one connection.
type resolution struct {
	*hostResolver
	connection resolver.ClientConn
	cancel     context.CancelFunc
	again      []chan struct{} // For each server: resolve its name once more.

	mutex sync.Mutex
	found [][]resolver.Address // For each server: nil before its name was resolved.
}

func (r *resolution) Close() { r.cancel() }

func (r *resolution) ResolveNow(resolver.ResolveNowOptions) {
	for _, again := range r.again {
		select {
		case again <- struct{}{}:
		default:
		}
	}
}

// run resolves the name of a server: at once, when a connection is lost, and while it fails.
func (r *resolution) run(ctx context.Context, i int) {
	failures := 0
	for {
		found, err := r.addresses(ctx, r.servers[i])
		r.publish(i, found, err)
		wait := resolveInterval
		if err == nil {
			failures = 0
		} else {
			failures++
			wait = r.backoff.delay(failures)
		}
		if !sleep(ctx, wait) {
			return
		}
		if err == nil {
			select {
			case <-r.again[i]:
			case <-ctx.Done():
				return
			}
		}
	}
}

// addresses are those of a server.
func (h *hostResolver) addresses(ctx context.Context, server address) ([]resolver.Address, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	hosts, err := h.lookUp(ctx, server.host)
	var found []resolver.Address
	for _, host := range hosts {
		found = append(found, resolver.Address{
			Addr: net.JoinHostPort(host, server.port), ServerName: server.String()})
	}
	return found, err
}

// publish passes on the addresses of all servers. One whose name is not resolved keeps its former
// ones.
func (r *resolution) publish(i int, found []resolver.Address, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case err == nil:
		r.found[i] = found
	case r.found[i] == nil:
		r.found[i] = []resolver.Address{}
	}
	all := slices.Concat(r.found...)
	isPending := func(found []resolver.Address) bool { return found == nil }
	switch {
	case len(all) > 0:
		_ = r.connection.UpdateState(resolver.State{Addresses: all})
	case !slices.ContainsFunc(r.found, isPending):
		r.connection.ReportError(errors.New("the names of the servers cannot be resolved"))
	}
}

func init() {
	balancer.Register(base.NewBalancerBuilder(inTurns, turnBuilder{}, base.Config{}))
}

type turnBuilder struct{}

func (turnBuilder) Build(info base.PickerBuildInfo) balancer.Picker {
	if len(info.ReadySCs) == 0 {
		return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	}
	picker := new(turns)
	for connection, about := range info.ReadySCs {
		picker.servers = append(picker.servers, server{connection, about.Address.Addr})
	}
	picker.next.Store(rand.Uint32())
	return picker
}

type server struct {
	connection balancer.SubConn
	address    string
}

// turns picks the connected servers in turn.
type turns struct {
	servers []server
	next    atomic.Uint32
}

// Pick picks another server than the one with which the call has just failed, if there is one.
func (t *turns) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	failed := failedServer(info.Ctx)
	turn := t.next.Add(1)
	var picked server
	for i := range t.servers {
		picked = t.servers[(int(turn)+i)%len(t.servers)]
		if picked.address != failed {
			break
		}
	}
	return balancer.PickResult{SubConn: picked.connection}, nil
}

type failedServerKey struct{}

// avoiding returns a context whose next attempt goes to another server, if there is one.
func avoiding(ctx context.Context, failed net.Addr) context.Context {
	if failed == nil {
		return ctx
	}
	return context.WithValue(ctx, failedServerKey{}, failed.String())
}

func failedServer(ctx context.Context) string {
	failed, _ := ctx.Value(failedServerKey{}).(string)
	return failed
}
