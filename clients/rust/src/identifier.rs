//! Constructors of identifiers.

use crate::v1::identifier::Kind;
use crate::v1::{Identifier, Phone, Social};

/// An email address.
pub fn email(address: impl Into<String>) -> Identifier {
    Identifier { kind: Some(Kind::Email(address.into())) }
}

/// A handle, such as `joe`.
pub fn handle(handle: impl Into<String>) -> Identifier {
    Identifier { kind: Some(Kind::Handle(handle.into())) }
}

/// A phone number. `region` is the country of a number without a prefix, such as `US`; else empty.
pub fn phone(number: impl Into<String>, region: impl Into<String>) -> Identifier {
    let phone = Phone { number: number.into(), region: region.into() };
    Identifier { kind: Some(Kind::Phone(phone)) }
}

/// An account at a provider, such as `google`.
pub fn social(provider: impl Into<String>, subject: impl Into<String>) -> Identifier {
    let social = Social { provider: provider.into(), subject: subject.into() };
    Identifier { kind: Some(Kind::Social(social)) }
}

/// The URL of a profile.
pub fn url(url: impl Into<String>) -> Identifier {
    Identifier { kind: Some(Kind::Url(url.into())) }
}
