package polynym

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// GetOrCreate returns the user who owns an identifier, and creates the user if nobody does: then
// created is true. The identifier becomes one of the new user's identities, unless it is one
// already. Of many callers at once, one creates the user, and all get it.
//
// Both steps share the deadline of a call. If the outcome is unknown, call it again.
func (c *Client) GetOrCreate(
	ctx context.Context, identifier *polynymv1.Identifier, user *polynymv1.User,
) (found *polynymv1.User, created bool, err error) {
	ctx, cancel := withTimeout(ctx, c.settings.timeout)
	defer cancel()
	response, err := c.Resolve(ctx, identifier)
	if !errors.Is(err, ErrNotFound) {
		return response.GetUser(), false, err
	}
	request := &polynymv1.CreateUserRequest{User: withIdentity(user, identifier)}
	answer, err := c.Registry.CreateUser(ctx, request)
	if err == nil {
		return answer.GetUser(), true, nil
	}
	if !errors.Is(err, ErrAlreadyExists) {
		return nil, false, err
	}
	linearizable := Consistency(polynymv1.Consistency_CONSISTENCY_LINEARIZABLE)
	response, missing := c.Resolve(ctx, identifier, linearizable)
	if errors.Is(missing, ErrNotFound) {
		return nil, false, err // Another of the identities is taken.
	}
	return response.GetUser(), false, missing
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
	completed.Identities = append(completed.Identities, &polynymv1.Identity{Identifier: identifier})
	return completed
}
