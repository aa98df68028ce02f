package polynym_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// count counts the items of a sequence.
func count[T any](items iter.Seq2[T, error]) (counted int, err error) {
	for _, err := range items {
		if err != nil {
			return counted, err
		}
		counted++
	}
	return counted, nil
}

// lists has every method with pages, in pages of two.
func lists(
	ctx context.Context, client *polynym.Client, userID string,
) map[string]func() (int, error) {
	history := &polynymv1.ListHistoryRequest{
		User: &polynymv1.ListHistoryRequest_UserId{UserId: userID}, PageSize: 2}
	return map[string]func() (int, error){
		"SearchUsers": func() (int, error) {
			return count(client.Search(ctx, &polynymv1.SearchUsersRequest{PageSize: 2}))
		},
		"FindUsers": func() (int, error) {
			return count(client.Find(ctx, &polynymv1.FindUsersRequest{
				Text: "@listed-0, @listed-1; @listed-2", PageSize: 2}))
		},
		"ListHistory": func() (int, error) { return count(client.History(ctx, history)) },
		"ListEvents": func() (int, error) {
			return count(client.Events(ctx, &polynymv1.ListEventsRequest{PageSize: 2}))
		},
		"ListNotices": func() (int, error) {
			return count(client.Notices(ctx, &polynymv1.ListNoticesRequest{UserId: userID, PageSize: 2}))
		},
		"ListBulkChanges": func() (int, error) {
			return count(client.BulkChanges(ctx, &polynymv1.ListBulkChangesRequest{PageSize: 2}))
		},
		"ListTenants": func() (int, error) {
			return count(client.Tenants(ctx, &polynymv1.ListTenantsRequest{PageSize: 2}))
		},
		"ListTenantHistory": func() (int, error) {
			return count(client.TenantHistory(ctx, &polynymv1.ListTenantHistoryRequest{PageSize: 2}))
		},
		"ListAttributeNames": func() (int, error) {
			return count(client.AttributeNames(ctx, &polynymv1.ListAttributeNamesRequest{PageSize: 2}))
		},
	}
}

// fill makes five items of each list: five users, and five events, notices and so on of the last.
func fill(t *testing.T, client *polynym.Client, tenant string) (userID string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for i := range 5 {
		userID = create(t, client, fmt.Sprint("listed-", i)).GetUserId()
		_, err := client.Admin.UpdateTenant(ctx, &polynymv1.UpdateTenantRequest{
			Tenant: fmt.Sprint(tenant, "-", i), Policies: &polynymv1.Policies{}})
		check(err)
		_, err = client.Admin.UpdateTenant(ctx, &polynymv1.UpdateTenantRequest{
			Policies: &polynymv1.Policies{
				RestoreWindow: durationpb.New(time.Duration(i+1) * time.Hour)}})
		check(err)
		enable := &polynymv1.BulkAction_Enable_{Enable: &polynymv1.BulkAction_Enable{}}
		_, err = client.Registry.StartBulkChange(ctx, &polynymv1.StartBulkChangeRequest{
			Filter: "state = DISABLED", ValidateOnly: true,
			Action: &polynymv1.BulkAction{Action: enable}})
		check(err)
	}
	for i := range 5 {
		name := fmt.Sprint("name", i)
		text := &polynymv1.AttributeValue_StringValue{StringValue: "x"}
		attributes := map[string]*polynymv1.AttributeValue{name: {Kind: text}}
		_, err := client.Registry.UpdateUser(ctx, &polynymv1.UpdateUserRequest{
			User:       &polynymv1.User{UserId: userID, Attributes: attributes},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"attributes." + name}}})
		check(err)
		_, err = client.Inbox.SendNotice(ctx, &polynymv1.SendNoticeRequest{
			Recipients: []*polynymv1.Recipient{
				{Recipient: &polynymv1.Recipient_UserId{UserId: userID}}},
			Notice: &polynymv1.NoticeContent{Subject: name}})
		check(err)
	}
	return userID
}

func TestEveryListHasAllItsPages(t *testing.T) {
	tenant := newTenant()
	client := connectTenant(t, polynym.WithTenant(tenant))
	userID := fill(t, client, tenant)
	want := map[string]int{
		"SearchUsers": 5, "FindUsers": 3, "ListHistory": 6, "ListEvents": 10, "ListNotices": 5, "ListBulkChanges": 5,
		"ListTenants": 6, "ListTenantHistory": 6, "ListAttributeNames": 5}
	for method, list := range lists(t.Context(), client, userID) {
		if got, err := list(); err != nil || got != want[method] {
			t.Errorf("%s: %d items, %v", method, got, err)
		}
	}
}

func TestNoListIsMissing(t *testing.T) {
	known := lists(t.Context(), nil, "")
	check := func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				method := methods.Get(j)
				hasPages := method.Output().Fields().ByName("next_page_token") != nil &&
					method.Input().Fields().ByName("page_token") != nil && !method.IsStreamingServer()
				if _, has := known[string(method.Name())]; has != hasPages {
					t.Errorf("%s: it has pages: %v", method.Name(), hasPages)
				}
			}
		}
		return true
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("polynym.v1", check)
}

func TestTypesOfEvents(t *testing.T) {
	types := polynymv1.EventType(0).Descriptor().Values()
	for i := range types.Len() {
		want := types.Get(i)
		event := new(polynymv1.Event)
		name := strings.ToLower(strings.TrimPrefix(string(want.Name()), "EVENT_TYPE_"))
		field := event.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
		if (field == nil) != (want.Number() == 0) {
			t.Errorf("no event is %s", want.Name())
		}
		if field != nil {
			event.ProtoReflect().Mutable(field)
		}
		if got := polynym.TypeOf(event); got.Number() != want.Number() {
			t.Errorf("%s is %v", name, got)
		}
	}
}
