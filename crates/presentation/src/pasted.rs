//! Reads a text that somebody pastes as an identifier of the kind that it looks like, or as a
//! filter.

use polynym_identifier::{RawIdentifier, email_within, pasted};

pub use polynym_identifier::is_region;
pub use polynym_identifier::pasted::is_national_number;

/// The identifier that a text looks like, if one: the likeliest that is valid. Numbers in national
/// form are of `region`.
pub fn identifier<'a>(text: &'a str, region: &'a str) -> Option<RawIdentifier<'a>> {
    let is_typed = email_within(text).is_some()
        || RawIdentifier::from_text(text).is_ok()
        || text.contains("://");
    if is_filter(text) && !is_typed {
        return None;
    }
    pasted::readings(text, &[region]).into_iter().next()
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
    has_operator && (FIELDS.iter().any(|field| text.contains(field)) || text.contains(" = "))
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
}
