package polynym

import "github.com/polynym/polynym/clients/go/polynymv1"

// Email is an email address, as typed.
func Email(address string) *polynymv1.Identifier {
	return &polynymv1.Identifier{Kind: &polynymv1.Identifier_Email{Email: address}}
}

// Handle is a user name, as typed, with or without a leading `@`.
func Handle(name string) *polynymv1.Identifier {
	return &polynymv1.Identifier{Kind: &polynymv1.Identifier_Handle{Handle: name}}
}

// Phone is a telephone number in international form, or in the national form of a region, such as
// `US`. The region is empty for a number in international form.
func Phone(number, region string) *polynymv1.Identifier {
	phone := &polynymv1.Phone{Number: number, Region: region}
	return &polynymv1.Identifier{Kind: &polynymv1.Identifier_Phone{Phone: phone}}
}

// Social is an account at another provider, such as `github`: the provider and its stable id of the
// account.
func Social(provider, subject string) *polynymv1.Identifier {
	social := &polynymv1.Social{Provider: provider, Subject: subject}
	return &polynymv1.Identifier{Kind: &polynymv1.Identifier_Social{Social: social}}
}

// URL is the address of a profile page.
func URL(address string) *polynymv1.Identifier {
	return &polynymv1.Identifier{Kind: &polynymv1.Identifier_Url{Url: address}}
}
