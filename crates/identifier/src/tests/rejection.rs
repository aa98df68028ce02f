//! Tests of the messages of rejections.

use crate::rejection::Rule;
use crate::{Identifier, Kind, RawIdentifier};

#[test]
fn a_rejection_shows_everything_except_the_value() {
    let raw = RawIdentifier::Email("canary canary@example.com");
    let rejection = Identifier::parse(raw).unwrap_err();
    assert_eq!(rejection.kind(), Kind::Email);
    assert_eq!(rejection.rule(), Rule::EmailCharacter);
    assert_eq!(rejection.position(), Some(6));
    assert_eq!(
        rejection.to_string(),
        "not a valid email: rule email-character at character 7; remove the character from the name"
    );
    assert!(!format!("{rejection:?}").contains("canary"));
}

#[test]
fn a_rejection_without_a_position_shows_none() {
    let rejection = Identifier::parse(RawIdentifier::Handle("12")).unwrap_err();
    assert_eq!(
        rejection.to_string(),
        "not a valid handle: rule handle-letter; use at least one letter"
    );
}
