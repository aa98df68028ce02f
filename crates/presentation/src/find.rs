//! The ways in which FindUsers reads a text, in words.

use polynym_proto::v1::{FindReading, FindWay, FoundUser};

/// A reading in words, such as `email joe@example.com` or `name with joe smith`.
pub fn reading(reading: &FindReading) -> String {
    let FindReading { value, region, attribute, .. } = reading;
    match reading.way() {
        FindWay::Identifier => identifier(value, region),
        FindWay::HeldIdentifier => format!("former {}, still held", identifier(value, region)),
        FindWay::UserId => format!("user id {value}"),
        FindWay::Attribute => format!("{attribute} {value}"),
        FindWay::AttributeStart => format!("{attribute} starting with {value}"),
        FindWay::Name => format!("name with {value}"),
        FindWay::PhoneEnd => format!("phone ending in {value}"),
        FindWay::EmailStart => format!("email starting with {value}"),
        FindWay::EmailDomain => format!("email at {value}"),
        FindWay::SimilarName => format!("name similar to {value}"),
        FindWay::Unspecified => value.clone(),
    }
}

/// The reasons why a user is found, in words.
pub fn reasons(found: &FoundUser) -> Vec<String> {
    let merged = Some(&found.merged_from).filter(|id| !id.is_empty());
    let merged = merged.map(|id| format!("user {id} was merged into this one"));
    found.reasons.iter().map(reading).chain(merged).collect()
}

/// An identifier in text form, as kind and value.
fn identifier(text: &str, region: &str) -> String {
    let (kind, value) = text.split_once(':').unwrap_or(("", text));
    match region {
        "" => format!("{kind} {value}"),
        region => format!("{kind} {value} in {region}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_said_in_words() {
        let said = |way: FindWay, value: &str, region: &str| {
            let (value, region) = (value.to_owned(), region.to_owned());
            let attribute = "customer".to_owned();
            reading(&FindReading { way: way.into(), value, region, attribute })
        };
        for (way, value, region, expected) in [
            (FindWay::Identifier, "email:a@b.c", "", "email a@b.c"),
            (FindWay::Identifier, "phone:+4930123456", "DE", "phone +4930123456 in DE"),
            (FindWay::HeldIdentifier, "handle:joe", "", "former handle joe, still held"),
            (FindWay::Attribute, "42", "", "customer 42"),
            (FindWay::AttributeStart, "42", "", "customer starting with 42"),
            (FindWay::PhoneEnd, "2671", "", "phone ending in 2671"),
            (FindWay::EmailDomain, "acme.example", "", "email at acme.example"),
            (FindWay::SimilarName, "jonh", "", "name similar to jonh"),
        ] {
            assert_eq!(said(way, value, region), expected);
        }
    }
}
