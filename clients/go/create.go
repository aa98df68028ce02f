package polynym

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// GetOrCreate returns the user who owns an identifier, and creates the user if nobody does: then
// created is true. The identifier becomes the first of the new user's identities, unless it is one
// of them already. Of many callers at once, one creates the user, and all get it.
//
// All steps share the deadline of a call. If the outcome is unknown, call it again.
func (c *Client) GetOrCreate(
	ctx context.Context, identifier *polynymv1.Identifier, user *polynymv1.User,
) (found *polynymv1.User, created bool, err error) {
	ctx, cancel := withTimeout(ctx, c.settings.timeout)
	defer cancel()
	response, err := c.Resolve(ctx, identifier)
	if !hasReason(err, ReasonIdentityNotFound) {
		return response.GetUser(), false, err
	}
	request := &polynymv1.CreateUserRequest{User: withIdentity(user, identifier)}
	answer, err := c.Registry.CreateUser(ctx, request)
	if err == nil {
		return answer.GetUser(), true, nil
	}
	if !hasReason(err, ReasonIdentityTaken) {
		return nil, false, err
	}
	linearizable := Consistency(polynymv1.Consistency_CONSISTENCY_LINEARIZABLE)
	response, missing := c.Resolve(ctx, identifier, linearizable)
	if hasReason(missing, ReasonIdentityNotFound) {
		return nil, false, err // Another of the identities is taken.
	}
	return response.GetUser(), false, missing
}

// hasReason reports whether the server has refused a call for a reason.
func hasReason(err error, reason string) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Reason == reason && !failure.unknown
}

// withIdentity returns the user with the identifier among the identities.
func withIdentity(user *polynymv1.User, identifier *polynymv1.Identifier) *polynymv1.User {
	has := func(identity *polynymv1.Identity) bool {
		return proto.Equal(identity.GetIdentifier(), identifier)
	}
	if slices.ContainsFunc(user.GetIdentities(), has) {
		return user
	}
	completed := new(polynymv1.User)
	proto.Merge(completed, user)
	first := &polynymv1.Identity{Identifier: identifier}
	completed.Identities = slices.Insert(completed.Identities, 0, first)
	return completed
}
