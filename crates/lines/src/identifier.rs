//! Identifiers of messages, and as typed.

use polynym_identifier::RawIdentifier;
use polynym_proto::v1;
use polynym_proto::v1::identifier::Kind;

/// The identifier of a message, if it has one.
pub fn raw_identifier(message: Option<&v1::Identifier>) -> Option<RawIdentifier<'_>> {
    Some(match message?.kind.as_ref()? {
        Kind::Email(email) => RawIdentifier::Email(email),
        Kind::Handle(handle) => RawIdentifier::Handle(handle),
        Kind::Phone(v1::Phone { number, region }) => RawIdentifier::Phone { number, region },
        Kind::Social(v1::Social { provider, subject }) => {
            RawIdentifier::Social { provider, subject }
        }
        Kind::Url(url) => RawIdentifier::Url(url),
    })
}

/// The message of an identifier.
pub fn identifier_message(raw: RawIdentifier<'_>) -> v1::Identifier {
    let kind = match raw {
        RawIdentifier::Email(email) => Kind::Email(email.to_owned()),
        RawIdentifier::Handle(handle) => Kind::Handle(handle.to_owned()),
        RawIdentifier::Phone { number, region } => {
            Kind::Phone(v1::Phone { number: number.to_owned(), region: region.to_owned() })
        }
        RawIdentifier::Social { provider, subject } => {
            Kind::Social(v1::Social { provider: provider.to_owned(), subject: subject.to_owned() })
        }
        RawIdentifier::Url(url) => Kind::Url(url.to_owned()),
    };
    v1::Identifier { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_the_same_as_messages() {
        let texts =
            ["email:a@b", "handle:joe", "phone:+1", "phone/US:415", "social:x/w", "url:https://a/"];
        for text in texts {
            let raw = RawIdentifier::from_text(text).unwrap();
            let message = identifier_message(raw);
            assert!(raw_identifier(Some(&message)) == Some(raw), "{text}");
        }
        assert!(raw_identifier(Some(&v1::Identifier::default())).is_none());
    }
}
