//! Identifiers in forms: a kind, a value as typed, and the country of a national number.

use polynym_identifier::{RawIdentifier, email_within, is_international};
use polynym_lines::identifier_message;
use polynym_proto::v1;

use super::problem::Problem;
use crate::form::Form;
use crate::views::reading::{self, Reading};

/// The kinds that a form offers, with their labels.
pub const KINDS: [(&str, &str); 6] = [
    ("", "Detect automatically"),
    ("email", "Email"),
    ("phone", "Phone"),
    ("handle", "Handle"),
    ("social", "Account"),
    ("url", "Profile URL"),
];

/// An identifier as typed.
#[derive(Clone, Debug)]
pub struct TypedIdentifier {
    /// For calls of the API.
    pub message: v1::Identifier,
    /// The text form, such as `phone/US:(415) 555-2671`.
    pub text: String,
}

/// Reads the fields `kind`, `value` and `region` of a form, each followed by `suffix`. The server
/// checks the value.
///
/// # Errors
/// The value is missing, or its kind is not clear.
pub fn identifier(form: &Form, suffix: &str) -> Result<TypedIdentifier, Problem> {
    let field = |name: &str| form.get(&format!("{name}{suffix}")).to_owned();
    let (kind, value, region) = (field("kind"), field("value"), field("region").to_uppercase());
    let wrong = |message: &str| Problem::form(&format!("value{suffix}"), message);
    if value.is_empty() {
        return Err(wrong("Type an identifier, such as joe@example.com."));
    }
    if let Some(address) = email_within(&value).filter(|_| matches!(&*kind, "" | "email")) {
        let message = format!("Write the address alone. The field has {address} now.");
        return Err(wrong(&message).with_offer(address));
    }
    let raw = match &*kind {
        "email" => RawIdentifier::Email(&value),
        "handle" => RawIdentifier::Handle(&value),
        "phone" => {
            let region = if is_international(&value) { "" } else { &region };
            RawIdentifier::Phone { number: &value, region }
        }
        "url" => RawIdentifier::Url(&value),
        "social" => {
            let parts = value
                .split_once('/')
                .map(|(provider, subject)| RawIdentifier::Social { provider, subject });
            parts.ok_or_else(|| wrong("Write the provider, a slash and the account's id."))?
        }
        _ => {
            return match reading::read(&value, &region) {
                Reading::Identifier(typed) => {
                    Ok(TypedIdentifier { message: typed.message, text: typed.text })
                }
                _ if value.chars().all(|c| !c.is_alphabetic()) => {
                    Err(wrong("This is no phone number of this country. Choose its country."))
                }
                _ => Err(wrong("The kind of this identifier is not clear: choose the kind.")),
            };
        }
    };
    Ok(TypedIdentifier { text: raw.to_string(), message: identifier_message(raw) })
}

/// The fields for an identifier in its text form.
pub fn fields(text: &str) -> Form {
    let Ok(raw) = RawIdentifier::from_text(text) else { return Form::default() };
    let (value, region) = match raw {
        RawIdentifier::Phone { number, region } => (number.to_owned(), region),
        RawIdentifier::Social { provider, subject } => (format!("{provider}/{subject}"), ""),
        other => (other.typed().to_owned(), ""),
    };
    Form::of(&[("kind", raw.kind().as_str()), ("value", &value), ("region", region)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, value: &str) -> Result<String, String> {
        let form = Form::of(&[("kind", kind), ("value", value), ("region", "us")]);
        identifier(&form, "").map(|typed| typed.text).map_err(|problem| problem.message.clone())
    }

    #[test]
    fn identifiers_are_read_by_their_kind_or_look() {
        for (kind, value, text) in [
            ("", "(415) 555-2671", "phone/US:(415) 555-2671"),
            ("", "joe@example.com", "email:joe@example.com"),
            ("phone", "+14155552671", "phone:+14155552671"),
            ("handle", "joe", "handle:joe"),
            ("social", "github/583231", "social:github/583231"),
        ] {
            assert_eq!(read(kind, value).unwrap(), text);
        }
        assert!(read("", "joe").unwrap_err().contains("choose the kind"));
        assert!(read("social", "github").unwrap_err().contains("a slash"));
        assert!(read("email", "").unwrap_err().contains("Type an identifier"));
        assert_eq!(fields("phone/US:(415) 555-2671").get("region"), "US");
        assert_eq!(fields("social:github/58").get("value"), "github/58");
    }
}
