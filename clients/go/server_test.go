package polynym_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func TestAUserHasManyNames(t *testing.T) {
	client := connectTenant(t)
	identifiers := []*polynymv1.Identifier{
		polynym.Email("Names@Example.com"), polynym.Handle("@Names"),
		polynym.Phone("(415) 555-2671", "US"), polynym.Social("GitHub", "583231"),
		polynym.URL("https://example.com/names/"),
	}
	user := &polynymv1.User{DisplayName: "Names"}
	for _, identifier := range identifiers {
		user.Identities = append(user.Identities, &polynymv1.Identity{Identifier: identifier})
	}
	request := &polynymv1.CreateUserRequest{User: user}
	created, err := client.Registry.CreateUser(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for _, identifier := range identifiers {
		found, err := client.Resolve(t.Context(), identifier, polynym.Fields("user_id"))
		if err != nil || found.GetUser().GetUserId() != created.GetUser().GetUserId() ||
			found.GetUser().GetDisplayName() != "" {
			t.Errorf("%v: %v, %v", identifier, found, err)
		}
	}
	_, err = client.Registry.CreateUser(t.Context(), request)
	taken := wantError(t, err, polynym.ErrAlreadyExists, "IDENTITY_TAKEN")
	if taken.Owner != created.GetUser().GetUserId() || strings.Contains(err.Error(), "example.com") {
		t.Errorf("%+v", taken)
	}
	_, err = client.Resolve(t.Context(), polynym.Email("nobody@example.com"))
	wantError(t, err, polynym.ErrNotFound, "IDENTITY_NOT_FOUND")
	_, err = client.Resolve(t.Context(), polynym.Email("no address"))
	if invalid := wantError(t, err, polynym.ErrInvalidArgument, "IDENTIFIER_INVALID"); invalid.Field == "" {
		t.Errorf("%+v", invalid)
	}
}

func TestARequestIDChangesOnce(t *testing.T) {
	client := connectTenant(t)
	request := &polynymv1.CreateUserRequest{
		User: &polynymv1.User{DisplayName: "Once"}, RequestId: "5b0e1b8e-6f3b-4a0c-9a60-0a1b2c3d4e5f"}
	first, err := client.Registry.CreateUser(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Registry.CreateUser(t.Context(), request)
	if err != nil || second.GetUser().GetUserId() != first.GetUser().GetUserId() {
		t.Errorf("%v, %v", second, err)
	}
}

func TestOptionsOfResolve(t *testing.T) {
	client := connectTenant(t)
	user := create(t, client, "options")
	got, err := client.GetUser(t.Context(), user.GetUserId(), "user_id")
	if err != nil || got.GetUser().GetEtag() != "" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = client.Registry.DisableUser(t.Context(),
		&polynymv1.DisableUserRequest{UserId: user.GetUserId()})
	if err != nil {
		t.Fatal(err)
	}
	options := polynym.Handle("options")
	_, err = client.Resolve(t.Context(), options)
	wantError(t, err, polynym.ErrFailedPrecondition, "USER_DISABLED")
	found, err := client.Resolve(t.Context(), options,
		polynym.ShowDisabled(), polynym.MaxStaleness(time.Minute), polynym.AsOf(time.Now()),
		polynym.Consistency(polynymv1.Consistency_CONSISTENCY_LINEARIZABLE),
		polynym.Timeout(time.Minute))
	if err != nil || found.GetUser().GetUserId() != user.GetUserId() {
		t.Errorf("%v, %v", found, err)
	}
	_, err = client.Resolve(t.Context(), options, polynym.InTenant("elsewhere"))
	if err == nil {
		t.Error("it is in another tenant, too")
	}
}

func TestResolveManyKeepsTheOrder(t *testing.T) {
	client := connectTenant(t)
	owners := map[string]string{}
	for i := range 20 {
		handles := make([]string, 90)
		for j := range handles {
			handles[j] = fmt.Sprintf("many-%d", i*90+j)
		}
		user := create(t, client, handles...)
		for _, handle := range handles {
			owners[handle] = user.GetUserId()
		}
	}
	identifiers := make([]*polynymv1.Identifier, 2500)
	for i := range identifiers {
		identifiers[i] = polynym.Handle(fmt.Sprintf("many-%d", i))
	}
	identifiers[7] = polynym.Handle("\xff")
	identifiers[8] = nil
	identifiers[44] = polynym.Email("no-address")
	for i, result := range client.ResolveMany(t.Context(), identifiers, polynym.Fields("user_id")) {
		owner, owned := owners[fmt.Sprintf("many-%d", i)]
		switch {
		case i == 7 || i == 8:
			wantError(t, result.Err, polynym.ErrInvalidArgument, "IDENTIFIER_INVALID")
		case i == 44:
			wantNoIndex(t, result.Err)
		case !owned:
			wantError(t, result.Err, polynym.ErrNotFound, "IDENTITY_NOT_FOUND")
		case result.Err != nil || result.User.GetUserId() != owner || result.Identity == nil:
			t.Fatalf("%d: %v", i, result)
		}
	}
	if results := client.ResolveMany(t.Context(), nil); len(results) != 0 {
		t.Errorf("%v", results)
	}
}

// wantNoIndex checks that an error is that of a single look-up, which does not tell of a batch.
func wantNoIndex(t *testing.T, err error) {
	t.Helper()
	failure := wantError(t, err, polynym.ErrInvalidArgument, "IDENTIFIER_INVALID")
	status := failure.GRPCStatus().Proto()
	text := fmt.Sprint(err, failure.Field, status)
	for _, detail := range failure.GRPCStatus().Details() {
		text += fmt.Sprint(detail)
	}
	if failure.Field != "identifier" || strings.Contains(text, "identifiers[") {
		t.Errorf("%s", text)
	}
}

// TestAnswersThatDoNotFitAreAskedForAgain resolves users of 300 KB, of which a response has a
// dozen.
func TestAnswersThatDoNotFitAreAskedForAgain(t *testing.T) {
	client := connectTenant(t)
	identifiers := make([]*polynymv1.Identifier, 20)
	users := make([]string, len(identifiers))
	for i := range identifiers {
		handle := fmt.Sprint("large-", i)
		identifiers[i] = polynym.Handle(handle)
		users[i] = create(t, client, handle).GetUserId()
		for part := range 5 {
			enlarge(t, client, users[i], part)
		}
	}
	for i, result := range client.ResolveMany(t.Context(), identifiers) {
		if result.Err != nil || result.User.GetUserId() != users[i] {
			t.Errorf("%d: %v", i, result.Err)
		}
	}
}

// enlarge adds attributes of 60 KB to a user.
func enlarge(t *testing.T, client *polynym.Client, userID string, part int) {
	t.Helper()
	user := &polynymv1.User{UserId: userID, Attributes: map[string]*polynymv1.AttributeValue{}}
	mask := &fieldmaskpb.FieldMask{}
	for i := range 15 {
		text := &polynymv1.AttributeValue_StringValue{StringValue: strings.Repeat("x", 4000)}
		name := fmt.Sprintf("a%d", part*15+i)
		user.Attributes[name] = &polynymv1.AttributeValue{Kind: text}
		mask.Paths = append(mask.Paths, "attributes."+name)
	}
	request := &polynymv1.UpdateUserRequest{User: user, UpdateMask: mask}
	if _, err := client.Registry.UpdateUser(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

func TestSearchAndHistoryGetAllPages(t *testing.T) {
	client := connectTenant(t)
	var last *polynymv1.User
	for i := range 7 {
		last = create(t, client, fmt.Sprint("paged-", i))
	}
	search := &polynymv1.SearchUsersRequest{PageSize: 3}
	found := map[string]bool{}
	for user, err := range client.Search(t.Context(), search) {
		if err != nil {
			t.Fatal(err)
		}
		found[user.GetUserId()] = true
	}
	if len(found) != 7 || search.GetPageToken() != "" {
		t.Errorf("%d users", len(found))
	}
	for i := range 4 {
		update := &polynymv1.UpdateUserRequest{
			User:       &polynymv1.User{UserId: last.GetUserId(), DisplayName: fmt.Sprint(i)},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"display_name"}}}
		if _, err := client.Registry.UpdateUser(t.Context(), update); err != nil {
			t.Fatal(err)
		}
	}
	sequence := int64(5)
	history := &polynymv1.ListHistoryRequest{
		User: &polynymv1.ListHistoryRequest_UserId{UserId: last.GetUserId()}, PageSize: 2}
	for event, err := range client.History(t.Context(), history) {
		if err != nil || event.GetSequence() != sequence {
			t.Fatalf("%v, %v", event, err)
		}
		sequence--
	}
	if sequence != 0 {
		t.Errorf("%d events are missing", sequence)
	}
	for _, err := range client.Search(t.Context(), &polynymv1.SearchUsersRequest{Filter: "("}) {
		wantError(t, err, polynym.ErrInvalidArgument, "FILTER_INVALID")
	}
}
