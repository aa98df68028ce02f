//! Tests of the forms that earlier versions of the rules, or of phone metadata, gave.

use crate::rejection::Rejection;
use crate::{Identifier, Kind, RULES_VERSION, RawIdentifier, Rules};

/// Made-up next rules, in which emails have no dots before the `@`.
fn next() -> Rules {
    fn parse(raw: RawIdentifier<'_>) -> Result<Identifier, Rejection> {
        let identifier = Identifier::parse(raw)?;
        match identifier.canonical().split_once('@') {
            Some((local, domain)) if identifier.kind() == Kind::Email => {
                let canonical = format!("{}@{domain}", local.replace('.', ""));
                Ok(Identifier::from_canonical(Kind::Email, canonical))
            }
            _ => Ok(identifier),
        }
    }
    Rules::new(RULES_VERSION + 1, parse, Identifier::normalize)
}

fn forms(rules: Rules, text: &str) -> Vec<String> {
    let forms = rules.earlier_forms(RawIdentifier::from_text(text).unwrap());
    forms.iter().map(|form| form.canonical().to_owned()).collect()
}

#[test]
fn one_version_is_known() {
    let versions = (0..=RULES_VERSION + 1).filter_map(Rules::known).map(Rules::version);
    assert_eq!(versions.collect::<Vec<_>>(), [Rules::OLDEST]);
    assert_eq!(Rules::known_before(Rules::PRESENT).count(), 0);
    assert_eq!(Rules::known_before(next()).map(Rules::version).next(), Some(RULES_VERSION));
}

#[test]
fn identifiers_have_their_earlier_forms() {
    assert_eq!(forms(next(), "email:Joe.A@x.org"), ["joe.a@x.org"]);
    assert_eq!(forms(next(), "email:joe@x.org"), [""; 0]);
    assert_eq!(forms(next(), "url:https://x.com/joe"), [""; 0]);
    assert_eq!(forms(Rules::PRESENT, "email:Joe.A@x.org"), [""; 0]);
}

/// A number that earlier metadata had is found as it is.
#[test]
fn numbers_have_the_form_of_earlier_metadata() {
    for (text, expected) in [
        ("phone:+1 115 555 2300", &["+11155552300"][..]),
        ("phone:tel:+1-115-555-2300", &["+11155552300"]),
        ("phone/US:115 555 2300", &[]),
    ] {
        assert_eq!(forms(Rules::PRESENT, text), expected, "{text}");
    }
}
