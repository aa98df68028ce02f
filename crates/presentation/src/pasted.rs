//! Reads a text that somebody pastes as an identifier of the kind that it looks like, or as a
//! filter.

use polynym_identifier::{RawIdentifier, email_within, pasted};

pub use polynym_identifier::is_region;
pub use polynym_identifier::pasted::is_national_number;

/// The identifier that a text looks like, if one: the likeliest that is valid. Numbers in national
/// form are of `region`.
pub fn identifier<'a>(text: &'a str, region: &'a str) -> Option<RawIdentifier<'a>> {
    if begins_with_condition(text) {
        return None;
    }
    let is_typed = email_within(text).is_some()
        || RawIdentifier::from_text(text).is_ok()
        || text.contains("://");
    if is_filter(text) && !is_typed {
        return None;
    }
    pasted::readings(text, &[region]).into_iter().next()
}

/// Whether a text begins with a field, an operator and, apart or in quotes, a value. No identifier
/// does, whatever the value.
fn begins_with_condition(text: &str) -> bool {
    let text = text.trim_start_matches(['(', '-', ' ']);
    let text = text.strip_prefix("NOT ").unwrap_or(text).trim_start_matches(['(', ' ']);
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let rest = text.trim_start_matches(is_word);
    let field = &text[..text.len() - rest.len()];
    let is_field = ["state", "display_name", "create_time", "update_time"].contains(&field)
        || ["attributes.", "identities."].iter().any(|start| field.starts_with(start));
    let rest = match (field, rest.strip_prefix('"')) {
        ("attributes.", Some(name)) => after_quotes(name),
        _ => rest,
    };
    let operator = rest.trim_start();
    let value = operator.trim_start_matches(['=', '!', '<', '>', ':']);
    is_field
        && value.len() < operator.len()
        && (value.starts_with([' ', '"', '\'', '*']) || operator.len() < rest.len())
}

/// What follows a text in quotes, from behind its opening mark on.
fn after_quotes(text: &str) -> &str {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => break,
            _ => {}
        }
    }
    chars.as_str()
}

/// Whether a text has an operator of the filter language.
pub fn is_filter(text: &str) -> bool {
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
    begins_with_condition(text)
        || has_operator && (FIELDS.iter().any(|field| text.contains(field)) || text.contains(" = "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_national_number_needs_a_region_and_a_filter_is_no_identifier() {
        assert!(identifier("(415) 555-2671", "").is_none());
        let us = identifier("(415) 555-2671", "US").unwrap();
        assert_eq!(us.to_string(), "phone/US:(415) 555-2671");
        for filter in ["identities.email=a@example.com", "identities.url = https://x.com/joe"] {
            assert!(identifier(filter, "US").is_none(), "{filter}");
        }
    }

    #[test]
    fn a_condition_is_a_filter_whatever_its_value() {
        for filter in [
            r#"attributes.home = "https://x.com/joe""#,
            r#"attributes.mail = "mailto:joe@example.com""#,
            r#"attributes.mail = "Joe <joe@example.com>""#,
            r#"attributes.mail = "x" OR attributes.mail = "<joe@example.com>""#,
            r#"attributes."a \" = b" = "https://x.com/joe""#,
            r#"NOT attributes.home = "https://x.com/joe""#,
            r#"(attributes.home: "https://x.com/joe")"#,
            "attributes.home:*",
            "state = ACTIVE",
        ] {
            assert!(identifier(filter, "US").is_none() && is_filter(filter), "{filter}");
        }
        for other in ["https://x.com/joe", "Joe <joe@example.com>", "(415) 555-2671"] {
            assert!(identifier(other, "US").is_some(), "{other}");
        }
    }
}
