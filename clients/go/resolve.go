package polynym

import (
	"context"
	"regexp"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

const (
	maxBatchItems = 1000
	maxBatchBytes = 900 << 10
)

// A ResolveOption changes how identifiers are resolved.
type ResolveOption func(*resolveCall)

type resolveCall struct {
	request *polynymv1.ResolveIdentityRequest
	timeout *time.Duration // Nil: that of the context, or of the client.
}

// InTenant resolves in a tenant, instead of the client's.
func InTenant(tenant string) ResolveOption {
	return func(c *resolveCall) { c.request.Tenant = tenant }
}

// Consistency sets how fresh the answer must be.
func Consistency(consistency polynymv1.Consistency) ResolveOption {
	return func(c *resolveCall) { c.request.Consistency = consistency }
}

// MaxStaleness accepts an answer from the server's cache, at most this old.
func MaxStaleness(age time.Duration) ResolveOption {
	return func(c *resolveCall) { c.request.MaxStaleness = durationpb.New(age) }
}

// ShowDisabled returns a disabled user, instead of failing with USER_DISABLED.
func ShowDisabled() ResolveOption {
	return func(c *resolveCall) { c.request.ShowDisabled = true }
}

// Fields returns only these fields of the user, such as `user_id` and `identities`.
func Fields(paths ...string) ResolveOption {
	return func(c *resolveCall) { c.request.ReadMask = &fieldmaskpb.FieldMask{Paths: paths} }
}

// AsOf returns the owner of the identifier at a time. Needs the role viewer.
func AsOf(t time.Time) ResolveOption {
	return func(c *resolveCall) { c.request.AsOf = timestamppb.New(t) }
}

// Timeout ends the call after this time, or when its context ends.
func Timeout(timeout time.Duration) ResolveOption {
	return func(c *resolveCall) { c.timeout = &timeout }
}

// newResolveCall applies options to a context and a request.
func (c *Client) newResolveCall(
	ctx context.Context, options []ResolveOption,
) (context.Context, context.CancelFunc, *polynymv1.ResolveIdentityRequest) {
	request := &polynymv1.ResolveIdentityRequest{Tenant: c.settings.tenant}
	call := resolveCall{request: request}
	for _, option := range options {
		option(&call)
	}
	if call.timeout != nil {
		ctx, cancel := context.WithTimeout(ctx, *call.timeout)
		return ctx, cancel, request
	}
	return ctx, func() {}, request
}

// Resolve finds the user who owns an identifier. The error is ErrNotFound if nobody owns it.
//
// Concurrent calls share requests, unless they are linearizable or have AsOf: a call goes at once
// if few are under way, and otherwise together with others when one of these returns.
func (c *Client) Resolve(
	ctx context.Context, identifier *polynymv1.Identifier, options ...ResolveOption,
) (*polynymv1.ResolveIdentityResponse, error) {
	ctx, cancelCall, request := c.newResolveCall(ctx, options)
	defer cancelCall()
	ctx, cancel := withTimeout(ctx, c.settings.timeout)
	defer cancel()
	request.Identifier = identifier
	if c.settings.withoutBatching || !shareable(ctx, request) {
		return c.Directory.ResolveIdentity(ctx, request)
	}
	return c.batcher.resolve(ctx, request)
}

// batchRequest is the request of a batch with the options of a single look-up.
func batchRequest(single *polynymv1.ResolveIdentityRequest) *polynymv1.BatchResolveIdentitiesRequest {
	return &polynymv1.BatchResolveIdentitiesRequest{
		Tenant:       single.GetTenant(),
		Consistency:  single.GetConsistency(),
		MaxStaleness: single.GetMaxStaleness(),
		ShowDisabled: single.GetShowDisabled(),
		ReadMask:     single.GetReadMask(),
		AsOf:         single.GetAsOf(),
	}
}

// itemName is the name of an identifier in a batch.
var itemName = regexp.MustCompile(`\bidentifiers\[\d+\]`)

// singleStatus is the status of an item as that of a single look-up: without the index in a batch
// that the caller may not have made.
func singleStatus(item *spb.Status) *spb.Status {
	rename := func(text string) string { return itemName.ReplaceAllLiteralString(text, "identifier") }
	single := proto.CloneOf(item)
	single.Message = rename(single.GetMessage())
	for _, detail := range single.GetDetails() {
		bad := new(errdetails.BadRequest)
		if !detail.MessageIs(bad) || detail.UnmarshalTo(bad) != nil {
			continue
		}
		for _, violation := range bad.GetFieldViolations() {
			violation.Field = rename(violation.GetField())
			violation.Description = rename(violation.GetDescription())
		}
		_ = detail.MarshalFrom(bad)
	}
	return single
}

// itemOutcome is the response or the error of an item, as those of a single look-up.
func itemOutcome(
	item *polynymv1.BatchResolveIdentitiesResponse_Result,
) (*polynymv1.ResolveIdentityResponse, *Error) {
	if failed := item.GetError(); failed != nil {
		return nil, statusError(status.FromProto(singleStatus(failed)), true)
	}
	found := item.GetFound()
	return &polynymv1.ResolveIdentityResponse{User: found.GetUser(), Identity: found.GetIdentity()}, nil
}

// encode returns the bytes of an identifier, or an error if it is no valid message.
func encode(identifier *polynymv1.Identifier) ([]byte, error) {
	encoded, err := proto.Marshal(identifier)
	if err != nil {
		failure := localError(codes.InvalidArgument, "the identifier is not valid UTF-8")
		failure.Reason, failure.Field = "IDENTIFIER_INVALID", "identifier"
		return nil, failure
	}
	return encoded, nil
}
