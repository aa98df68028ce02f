//! Identifiers on the command line and in output.

use crate::output::printable;
use polynym_identifier::{RawIdentifier, TextError};
use polynym_proto::v1;
use polynym_proto::v1::identifier::Kind;

/// An identifier on the command line.
#[derive(Clone, Debug)]
pub struct IdentifierArg {
    /// The text form.
    pub text: String,
    /// The message.
    pub message: v1::Identifier,
}

/// Parses the text form. The server validates the value.
pub fn parse(text: &str) -> Result<IdentifierArg, TextError> {
    let kind = match RawIdentifier::from_text(text)? {
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

    Ok(IdentifierArg { text: text.to_owned(), message: v1::Identifier { kind: Some(kind) } })
}

/// The text form of an identifier from an answer, safe to print.
pub fn text(message: Option<&v1::Identifier>) -> String {
    let Some(kind) = message.and_then(|identifier| identifier.kind.as_ref()) else {
        return String::new();
    };
    let raw = match kind {
        Kind::Email(email) => RawIdentifier::Email(email),
        Kind::Handle(handle) => RawIdentifier::Handle(handle),
        Kind::Phone(v1::Phone { number, region }) => RawIdentifier::Phone { number, region },
        Kind::Social(v1::Social { provider, subject }) => {
            RawIdentifier::Social { provider, subject }
        }
        Kind::Url(url) => RawIdentifier::Url(url),
    };

    printable(&raw.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip() {
        let texts = [
            "email:a@b",
            "handle:joe",
            "phone:+1",
            "phone/US:415",
            "social:x/y/z:w",
            "url:https://a/b:c",
        ];
        for given in texts {
            let parsed = parse(given).unwrap();
            assert_eq!((&*parsed.text, &*text(Some(&parsed.message))), (given, given));
        }
    }

    #[test]
    fn a_text_without_a_kind_is_refused() {
        assert_eq!(parse("joe@example.com").unwrap_err(), TextError::NoKind);
        assert_eq!(parse("mail:joe@example.com").unwrap_err(), TextError::UnknownKind);
        assert_eq!(parse("social:github").unwrap_err(), TextError::NoSubject);
    }
}
