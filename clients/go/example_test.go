package polynym_test

import (
	"context"
	"fmt"
	"log"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func Example() {
	ctx := context.Background()
	client, err := polynym.Connect("") // Or "https://users:7171", polynym.WithTokenFile("token").
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	joe := &polynymv1.User{DisplayName: "Joe Smith", Identities: []*polynymv1.Identity{
		{Identifier: polynym.Email("Joe@Example.com")}, {Identifier: polynym.Handle("joe")}}}
	if _, err := client.Registry.CreateUser(ctx, &polynymv1.CreateUserRequest{User: joe}); err != nil {
		log.Fatal(err)
	}
	found, err := client.Resolve(ctx, polynym.Email("joe@example.com"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.GetUser().GetDisplayName())
	// Output: Joe Smith
}
