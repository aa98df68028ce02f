//! Identifiers on the command line and in output.

use crate::output::printable;
use polynym_identifier::{RawIdentifier, TextError};
use polynym_lines::{identifier_message, raw_identifier};
use polynym_proto::v1;

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
    let message = identifier_message(RawIdentifier::from_text(text)?);
    Ok(IdentifierArg { text: text.to_owned(), message })
}

/// The text form of an identifier from an answer, safe to print.
pub fn text(message: Option<&v1::Identifier>) -> String {
    let text = raw_identifier(message).map(|raw| raw.to_string()).unwrap_or_default();
    printable(&text).into_owned()
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
