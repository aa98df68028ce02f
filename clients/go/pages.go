package polynym

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
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

// Search returns the users that match a filter, page by page. An error ends the sequence, as it
// does those below.
func (c *Client) Search(
	ctx context.Context, request *polynymv1.SearchUsersRequest,
) iter.Seq2[*polynymv1.User, error] {
	return pages(ctx, request, c.Directory.SearchUsers, (*polynymv1.SearchUsersResponse).GetUsers)
}

// Find returns the users whom a text finds, the likeliest first.
func (c *Client) Find(
	ctx context.Context, request *polynymv1.FindUsersRequest,
) iter.Seq2[*polynymv1.FoundUser, error] {
	return pages(ctx, request, c.Directory.FindUsers, (*polynymv1.FindUsersResponse).GetMatches)
}

// History returns the events of a user, newest first.
func (c *Client) History(
	ctx context.Context, request *polynymv1.ListHistoryRequest,
) iter.Seq2[*polynymv1.Event, error] {
	return pages(ctx, request, c.Directory.ListHistory, (*polynymv1.ListHistoryResponse).GetEvents)
}

// Events returns the events of all users of a tenant, in the order of their users.
func (c *Client) Events(
	ctx context.Context, request *polynymv1.ListEventsRequest,
) iter.Seq2[*polynymv1.Event, error] {
	return pages(ctx, request, c.Directory.ListEvents, (*polynymv1.ListEventsResponse).GetEvents)
}

// Notices returns the notices of a user, latest first.
func (c *Client) Notices(
	ctx context.Context, request *polynymv1.ListNoticesRequest,
) iter.Seq2[*polynymv1.Notice, error] {
	return pages(ctx, request, c.Inbox.ListNotices, (*polynymv1.ListNoticesResponse).GetNotices)
}

// BulkChanges returns the bulk changes of a tenant, newest first.
func (c *Client) BulkChanges(
	ctx context.Context, request *polynymv1.ListBulkChangesRequest,
) iter.Seq2[*polynymv1.BulkChange, error] {
	items := (*polynymv1.ListBulkChangesResponse).GetBulkChanges
	return pages(ctx, request, c.Registry.ListBulkChanges, items)
}

// Tenants returns the tenants, by name. The client's tenant is a prefix of the names.
func (c *Client) Tenants(
	ctx context.Context, request *polynymv1.ListTenantsRequest,
) iter.Seq2[*polynymv1.Tenant, error] {
	return pages(ctx, request, c.Admin.ListTenants, (*polynymv1.ListTenantsResponse).GetTenants)
}

// TenantHistory returns the events of a tenant itself, newest first.
func (c *Client) TenantHistory(
	ctx context.Context, request *polynymv1.ListTenantHistoryRequest,
) iter.Seq2[*polynymv1.TenantEvent, error] {
	items := (*polynymv1.ListTenantHistoryResponse).GetEvents
	return pages(ctx, request, c.Admin.ListTenantHistory, items)
}

// AttributeNames returns the names of the attributes of a tenant's users.
func (c *Client) AttributeNames(
	ctx context.Context, request *polynymv1.ListAttributeNamesRequest,
) iter.Seq2[string, error] {
	items := (*polynymv1.ListAttributeNamesResponse).GetNames
	return pages(ctx, request, c.Admin.ListAttributeNames, items)
}

// page is the response of a method with pages.
type page interface{ GetNextPageToken() string }

// pages is the sequence of the items of all pages. It gets a page when the one before is used up.
func pages[Request proto.Message, Response page, Item any](
	ctx context.Context, request Request,
	get func(context.Context, Request, ...grpc.CallOption) (Response, error),
	items func(Response) []Item,
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		next := proto.CloneOf(request)
		message := next.ProtoReflect()
		token := message.Descriptor().Fields().ByName("page_token")
		for {
			response, err := get(ctx, next)
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items(response) {
				if !yield(item, nil) {
					return
				}
			}
			if response.GetNextPageToken() == "" {
				return
			}
			message.Set(token, protoreflect.ValueOfString(response.GetNextPageToken()))
		}
	}
}
