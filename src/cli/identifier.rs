//! Identifiers between their text form and the API's messages.

use super::output::printable;
use crate::identifier::{RawIdentifier, TextError};
use crate::proto::v1;
use crate::proto::v1::identifier::Kind;

/// An identifier as typed on the command line.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The text form.
    pub text: String,
    /// The same as a message.
    pub message: v1::Identifier,
}

/// Reads the text form; the value is for the server to judge.
pub fn parse(text: &str) -> Result<Typed, TextError> {
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

    Ok(Typed { text: text.to_owned(), message: v1::Identifier { kind: Some(kind) } })
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
    fn text_forms_survive_the_round_trip() {
        let texts = [
            "email:a@b",
            "handle:joe",
            "phone:+1",
            "phone/US:415",
            "social:x/y/z:w",
            "url:https://a/b:c",
        ];
        for typed in texts {
            let parsed = parse(typed).unwrap();
            assert_eq!(
                (parsed.text.as_str(), text(Some(&parsed.message)).as_str()),
                (typed, typed)
            );
        }
    }

    #[test]
    fn a_text_without_a_kind_is_refused() {
        assert_eq!(parse("joe@example.com").unwrap_err(), TextError::NoKind);
        assert_eq!(parse("mail:joe@example.com").unwrap_err(), TextError::UnknownKind);
        assert_eq!(parse("social:github").unwrap_err(), TextError::NoSubject);
    }
}
