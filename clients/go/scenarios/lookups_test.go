package scenarios_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func (p *puppet) resolve(ctx context.Context, encoded []byte, timeout time.Duration) (result, error) {
	request := new(polynymv1.ResolveIdentityRequest)
	if err := proto.Unmarshal(encoded, request); err != nil {
		return result{}, err
	}
	options := resolveOptions(request)
	if timeout > 0 {
		options = append(options, polynym.Timeout(timeout))
	}
	return resultOf(p.client.Resolve(ctx, request.GetIdentifier(), options...)), nil
}

func resolveOptions(request *polynymv1.ResolveIdentityRequest) []polynym.ResolveOption {
	options := []polynym.ResolveOption{polynym.Consistency(request.GetConsistency())}
	if request.GetTenant() != "" {
		options = append(options, polynym.InTenant(request.GetTenant()))
	}
	if request.GetMaxStaleness() != nil {
		options = append(options, polynym.MaxStaleness(request.GetMaxStaleness().AsDuration()))
	}
	if request.GetShowDisabled() {
		options = append(options, polynym.ShowDisabled())
	}
	if request.GetReadMask() != nil {
		options = append(options, polynym.Fields(request.GetReadMask().GetPaths()...))
	}
	if request.GetAsOf() != nil {
		options = append(options, polynym.AsOf(request.GetAsOf().AsTime()))
	}
	return options
}

func (p *puppet) resolveConcurrently(ctx context.Context, step *step) ([]result, error) {
	results := make([]result, len(step.Requests))
	faults := make([]error, len(step.Requests))
	concurrently(len(results), func(i int) {
		results[i], faults[i] = p.resolve(ctx, step.Requests[i], step.timeout(i))
	})
	return results, errors.Join(faults...)
}

func (p *puppet) resolveMany(ctx context.Context, step *step) ([]result, error) {
	request := new(polynymv1.BatchResolveIdentitiesRequest)
	if err := proto.Unmarshal(step.Request, request); err != nil {
		return nil, err
	}
	options := resolveOptions(&polynymv1.ResolveIdentityRequest{
		Tenant: request.GetTenant(), Consistency: request.GetConsistency(),
		MaxStaleness: request.GetMaxStaleness(), ShowDisabled: request.GetShowDisabled(),
		ReadMask: request.GetReadMask(), AsOf: request.GetAsOf()})
	results := []result{}
	for _, found := range p.client.ResolveMany(ctx, request.GetIdentifiers(), options...) {
		message := &polynymv1.BatchResolveIdentitiesResponse_Found{User: found.User, Identity: found.Identity}
		results = append(results, resultOf(message, found.Err))
	}
	return results, nil
}

func collect[T proto.Message](items func(func(T, error) bool)) []result {
	results := []result{}
	for item, err := range items {
		results = append(results, resultOf(item, err))
	}
	return results
}

// concurrently runs a function so many times at once, and waits for all.
func concurrently(count int, run func(i int)) {
	var group sync.WaitGroup
	group.Add(count)
	for i := range count {
		go func() {
			defer group.Done()
			run(i)
		}()
	}
	group.Wait()
}

func (p *puppet) getOrCreate(ctx context.Context, step *step) ([]result, error) {
	request := new(polynymv1.CreateUserRequest)
	if err := proto.Unmarshal(step.Request, request); err != nil {
		return nil, err
	}
	user := request.GetUser()
	identifier := user.GetIdentities()[0].GetIdentifier()
	results := make([]result, max(step.Concurrency, 1))
	concurrently(len(results), func(i int) {
		found, created, err := p.client.GetOrCreate(ctx, identifier, user)
		results[i] = resultOf(found, err)
		results[i].Created = created
	})
	return results, nil
}

// keptResolving are loops of look-ups.
type keptResolving struct {
	cancel context.CancelFunc
	group  sync.WaitGroup

	mutex  sync.Mutex
	answer keptAnswer
}

type keptAnswer struct {
	Answers int            `json:"answers"`
	Errors  []*resultError `json:"errors"`
}

func (p *puppet) keepResolving(step *step) error {
	request := new(polynymv1.ResolveIdentityRequest)
	if err := proto.Unmarshal(step.Request, request); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	options := resolveOptions(request)
	p.kept = &keptResolving{cancel: cancel, answer: keptAnswer{Errors: []*resultError{}}}
	for range 8 {
		p.kept.group.Add(1)
		go func() {
			defer p.kept.group.Done()
			for ctx.Err() == nil {
				found, err := p.client.Resolve(context.Background(), request.GetIdentifier(), options...)
				p.kept.add(resultOf(found, err))
			}
		}()
	}
	return nil
}

func (k *keptResolving) add(one result) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if one.Error == nil {
		k.answer.Answers++
	} else if len(k.answer.Errors) < 20 {
		k.answer.Errors = append(k.answer.Errors, one.Error)
	}
}

func (k *keptResolving) stop() *keptAnswer {
	k.cancel()
	k.group.Wait()
	return &k.answer
}
