package polynym

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/polynym/polynym/clients/go/polynymv1"
)

// GetUser gets a user by its id, with all fields unless some are named.
func (c *Client) GetUser(
	ctx context.Context, userID string, fields ...string,
) (*polynymv1.GetUserResponse, error) {
	request := &polynymv1.GetUserRequest{UserId: userID}
	if len(fields) > 0 {
		request.ReadMask = &fieldmaskpb.FieldMask{Paths: fields}
	}
	return c.Directory.GetUser(ctx, request)
}

// Search returns the users that match a filter, page by page. An error ends the sequence.
func (c *Client) Search(
	ctx context.Context, request *polynymv1.SearchUsersRequest,
) iter.Seq2[*polynymv1.User, error] {
	return pages(func(token string) ([]*polynymv1.User, string, error) {
		page := proto.CloneOf(request)
		if token != "" {
			page.PageToken = token
		}
		response, err := c.Directory.SearchUsers(ctx, page)
		return response.GetUsers(), response.GetNextPageToken(), err
	})
}

// History returns the events of a user, newest first, page by page. An error ends the sequence.
func (c *Client) History(
	ctx context.Context, request *polynymv1.ListHistoryRequest,
) iter.Seq2[*polynymv1.Event, error] {
	return pages(func(token string) ([]*polynymv1.Event, string, error) {
		page := proto.CloneOf(request)
		if token != "" {
			page.PageToken = token
		}
		response, err := c.Directory.ListHistory(ctx, page)
		return response.GetEvents(), response.GetNextPageToken(), err
	})
}

// pages is the sequence of the items of all pages. It gets a page when the one before is used up.
func pages[T any](get func(token string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		token := ""
		for {
			items, next, err := get(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			token = next
		}
	}
}
