//! Tests of social.

use super::{broken, check_any, form};
use crate::identifier::{Identifier, Kind, RawIdentifier, Rule};

fn raw<'a>(provider: &'a str, subject: &'a str) -> RawIdentifier<'a> {
    RawIdentifier::Social { provider, subject }
}

#[test]
fn canonical_forms() {
    let longest = ("p".repeat(64), "é".repeat(127));
    let cases = [
        ("GitHub", "583231", "github/583231"),
        ("github", "Octo Cat", "github/Octo Cat"),
        ("my-idp.example_1", "a/b:c@d", "my-idp.example_1/a/b:c@d"),
        ("0auth", "e\u{301}", "0auth/e\u{301}"),
        ("p", "/", "p//"),
        (&longest.0, &longest.1, &format!("{}/{}", longest.0, longest.1)),
    ];
    for (provider, subject, canonical) in cases {
        assert_eq!(form(raw(provider, subject)), canonical);
        let identifier = check_any(raw(provider, subject)).unwrap();
        let parts = (&*provider.to_ascii_lowercase(), subject);
        assert_eq!(identifier.social_parts(), Some(parts));
    }
    let url = Identifier::from_canonical(Kind::Url, "https://a/b".to_owned());
    assert_eq!(url.social_parts(), None);
}

#[test]
fn faults_name_rule_and_place() {
    let long = ("p".repeat(65), "é".repeat(128));
    let cases = [
        ("", "1", Rule::SocialProvider, None),
        (&long.0, "1", Rule::SocialProvider, None),
        (".x", "1", Rule::SocialProvider, Some(0)),
        ("git hub", "1", Rule::SocialProvider, Some(3)),
        ("git/hub", "1", Rule::SocialProvider, Some(3)),
        ("\u{212a}akao", "1", Rule::SocialProvider, Some(0)),
        ("github", "", Rule::SocialSubjectLength, None),
        ("github", &long.1, Rule::SocialSubjectLength, None),
        ("github", "58\n32", Rule::SocialSubjectControl, Some(2)),
        ("github", "é\u{9f}", Rule::SocialSubjectControl, Some(1)),
    ];
    for (provider, subject, rule, position) in cases {
        assert_eq!(broken(raw(provider, subject)), (rule, position));
    }
}
