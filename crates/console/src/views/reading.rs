//! How the search box reads a text: as an identifier, an id, or a filter.

use locality_uuid::LocalityId;
use polynym_identifier::{Identifier, RawIdentifier};
use polynym_lines::identifier_message;
use polynym_proto::v1;

use super::identity;

/// What a text in the search box means.
#[derive(Clone, Debug)]
pub enum Reading {
    /// The id of a user.
    Id(String),
    /// An identifier.
    Identifier(Box<Typed>),
    /// A filter as in searches, such as `attributes.team = "search"`.
    Filter(String),
    /// Words of names.
    Words(String),
}

/// An identifier as typed.
#[derive(Clone, Debug)]
pub struct Typed {
    /// For calls of the API.
    pub message: v1::Identifier,
    /// How it was read, such as `phone, United States, +14155552671`.
    pub description: String,
    /// The text form, such as `phone/US:(415) 555-2671`.
    pub text: String,
}

/// Reads a text. Numbers in national form are of `region`.
pub fn read(text: &str, region: &str) -> Reading {
    let text = text.trim();
    if let Ok(id) = text.parse::<LocalityId>() {
        return Reading::Id(id.to_string());
    }
    if let Some(typed) = candidates(text, region).into_iter().find_map(typed) {
        return Reading::Identifier(Box::new(typed));
    }
    if is_filter(text) { Reading::Filter(text.to_owned()) } else { Reading::Words(text.to_owned()) }
}

/// What a text may be, the likeliest first.
fn candidates<'a>(text: &'a str, region: &'a str) -> Vec<RawIdentifier<'a>> {
    if let Ok(raw) = RawIdentifier::from_text(text) {
        return vec![raw];
    }
    if text.contains("://") {
        return vec![RawIdentifier::Url(text)];
    }
    if is_filter(text) {
        return Vec::new();
    }
    if text.starts_with('@') {
        return vec![RawIdentifier::Handle(text)];
    }
    if text.contains('@') {
        return vec![RawIdentifier::Email(text)];
    }
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_number = |c: char| c.is_ascii_digit() || " +-().\u{a0}/".contains(c);
    if digits >= 5 && text.chars().all(is_number) {
        return vec![RawIdentifier::Phone { number: text, region }];
    }
    match text.split_once('/') {
        Some((host, _)) if host.contains('.') => vec![RawIdentifier::Url(text)],
        Some((provider, subject)) if !text.contains(' ') => {
            vec![RawIdentifier::Social { provider, subject }]
        }
        _ => Vec::new(),
    }
}

fn typed(raw: RawIdentifier<'_>) -> Option<Typed> {
    let parsed = Identifier::parse(raw).ok()?;
    let message = identifier_message(raw);
    let canonical = identifier_message(parsed.as_typed());
    let value = identity::value(Some(&canonical));
    let kind = raw.kind().as_str();
    let description = match raw {
        RawIdentifier::Phone { number, region } if !number.trim_start().starts_with('+') => {
            format!("{kind}, {}, {value}", identity::region_name(region))
        }
        _ => format!("{kind}, {value}"),
    };
    Some(Typed { text: raw.to_string(), message, description })
}

/// Whether a text has an operator of the filter language.
fn is_filter(text: &str) -> bool {
    const FIELDS: [&str; 8] = [
        "state",
        "display_name",
        "attributes.",
        "identities",
        "create_time",
        "update_time",
        "NOT ",
        "words",
    ];
    let has_operator = text.contains(['=', '<', '>']) || text.contains(':');
    has_operator && (FIELDS.iter().any(|field| text.contains(field)) || text.contains(" = "))
}

/// The filter for names with these words; the last one may be cut off.
pub fn filter_of(words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    let escaped = words.replace('\\', "\\\\").replace('"', "\\\"").replace('*', "\\*");
    format!("display_name: \"{escaped}*\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> String {
        match read(text, "US") {
            Reading::Identifier(typed) => typed.description,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn pastes_are_understood() {
        for (text, expected) in [
            ("(415) 555-2671", "phone, United States, +14155552671"),
            ("+1 415 555 2671", "phone, +14155552671"),
            ("Joe.Smith@Example.com", "email, joe.smith@example.com"),
            ("@Joe", "handle, joe"),
            ("github/583231", "social, github/583231"),
            ("https://twitter.com/Joe/", "url, https://x.com/joe"),
            ("handle:joe", "handle, joe"),
        ] {
            assert_eq!(described(text), expected, "{text}");
        }
        assert!(matches!(read("Joe Smith", "US"), Reading::Words(_)));
        assert!(matches!(read("state = DISABLED", "US"), Reading::Filter(_)));
        assert!(matches!(read("attributes.team = \"a@b\"", "US"), Reading::Filter(_)));
    }

    #[test]
    fn words_are_quoted_in_filters() {
        assert_eq!(filter_of("joe \"x\" *"), r#"display_name: "joe \"x\" \**""#);
        assert_eq!(filter_of(""), "");
    }
}
