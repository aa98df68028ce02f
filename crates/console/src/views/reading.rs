//! How the search box reads a text: as an identifier, an id, or a filter.

use locality_uuid::LocalityId;
use polynym_identifier::{Identifier, RawIdentifier, is_international};
use polynym_lines::identifier_message;
use polynym_presentation::pasted::{self, is_filter};
use polynym_proto::v1;

use super::{identity, listed};

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
    /// The text form of the canonical identifier, such as `phone:+14155552671`.
    pub canonical: String,
}

/// Reads a text. Numbers in national form are of `region`.
pub fn read(text: &str, region: &str) -> Reading {
    let text = text.trim();
    if let Ok(id) = text.parse::<LocalityId>() {
        return Reading::Id(id.to_string());
    }
    let is_list = listed::is_list(text, region);
    if let Some(typed) = pasted::identifier(text, region).filter(|_| !is_list).and_then(typed) {
        return Reading::Identifier(Box::new(typed));
    }
    if is_filter(text) && !is_list {
        Reading::Filter(text.to_owned())
    } else {
        Reading::Words(text.to_owned())
    }
}

fn typed(raw: RawIdentifier<'_>) -> Option<Typed> {
    let parsed = Identifier::parse(raw).ok()?;
    let message = identifier_message(raw);
    let canonical = identifier_message(parsed.as_typed());
    let value = identity::value(Some(&canonical));
    let kind = raw.kind().as_str();
    let description = match raw {
        RawIdentifier::Phone { number, region } if !is_international(number) => {
            format!("{kind}, {}, {value}", identity::region_name(region))
        }
        _ => format!("{kind}, {value}"),
    };
    let (text, canonical) = (raw.to_string(), parsed.to_string());
    Some(Typed { message, description, text, canonical })
}

/// The filter for names with these words; the last one may be cut off.
pub fn filter_of(words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    format!("display_name: \"{}*\"", escaped(words))
}

/// A text as in the quotes of a filter.
pub fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let mark = matches!(c, '\\' | '"' | '*').then_some('\\');
            mark.into_iter().chain([c])
        })
        .collect()
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
            ("tel:+1-415-555-2671", "phone, +14155552671"),
            ("(+1) 415 555 2671", "phone, +14155552671"),
            ("\u{202a}+1 415 555 2671\u{202c}", "phone, +14155552671"),
            ("\u{2068}(415) 555-2671\u{2069}", "phone, United States, +14155552671"),
            ("Ann Lee <Ann@example.com>", "email, ann@example.com"),
            ("\"Lee, Ann\" <ann@example.com>", "email, ann@example.com"),
            ("mailto:ann@example.com?subject=state", "email, ann@example.com"),
            ("linkedin.com/in/Ann-Lee", "url, https://www.linkedin.com/in/ann-lee"),
            ("threads.net/@ann", "url, https://www.threads.com/@ann"),
            ("https://x.com/Ann/with_replies", "url, https://x.com/ann"),
            ("joe/smith@example.com", "email, joe/smith@example.com"),
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
