//! Tests of the text form.

use proptest::prelude::*;

use crate::text::TextError;
use crate::{Identifier, Kind, RawIdentifier};

#[test]
fn every_kind_is_parsed() {
    let cases = [
        ("email:joe@example.com", RawIdentifier::Email("joe@example.com")),
        ("handle:a:b/c", RawIdentifier::Handle("a:b/c")),
        ("phone:+14155552300", RawIdentifier::Phone { number: "+14155552300", region: "" }),
        (
            "phone/US:(415) 555-2300",
            RawIdentifier::Phone { number: "(415) 555-2300", region: "US" },
        ),
        (
            "social:https%3A%2F%2Fx.y/a/b",
            RawIdentifier::Social { provider: "https%3A%2F%2Fx.y", subject: "a/b" },
        ),
        ("social:github/a/b:c", RawIdentifier::Social { provider: "github", subject: "a/b:c" }),
        ("url:https://x.y/a", RawIdentifier::Url("https://x.y/a")),
    ];
    for (text, raw) in cases {
        assert_eq!(RawIdentifier::from_text(text), Ok(raw));
        assert_eq!(raw.to_string(), text);
    }
}

#[test]
fn missing_parts_are_errors() {
    for (text, error) in [
        ("", TextError::NoKind),
        ("joe@example.com", TextError::NoKind),
        ("mail:joe@example.com", TextError::UnknownKind),
        ("Email:joe@example.com", TextError::UnknownKind),
        ("https://x.y", TextError::UnknownKind),
        ("social:github", TextError::NoSubject),
        ("social:https://accounts.google.com/42", TextError::PlainIssuer),
        ("email/US:joe@example.com", TextError::UnknownKind),
    ] {
        assert_eq!(RawIdentifier::from_text(text), Err(error));
    }
}

#[test]
fn kinds_have_words() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let mut words = Kind::ALL.map(Kind::as_str);
    words.sort_unstable();
    assert_eq!(words, Kind::ALL.map(Kind::as_str));
}

#[test]
fn debug_hides_the_value() {
    let raw = RawIdentifier::Handle("canary");
    let identifier = Identifier::parse(raw).unwrap();
    let shown = format!("{raw:?} {identifier:?} {:?}", Identifier::normalize(raw));
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("handle"), "{shown}");
}

proptest! {
    #[test]
    fn texts_round_trip(provider in "[^/]{0,5}", value in ".{0,9}", region in "[^:]{0,3}") {
        for raw in [
            RawIdentifier::Email(&value),
            RawIdentifier::Handle(&value),
            RawIdentifier::Phone { number: &value, region: &region },
            RawIdentifier::Social { provider: &provider, subject: &value },
            RawIdentifier::Url(&value),
        ] {
            let text = raw.to_string();
            prop_assert_eq!(RawIdentifier::from_text(&text), Ok(raw));
        }
    }
}
