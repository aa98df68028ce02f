//! Tests of social accounts.

use super::{broken, check_any, form};
use crate::rejection::Rule;
use crate::{Identifier, Kind, RawIdentifier};

fn raw<'a>(provider: &'a str, subject: &'a str) -> RawIdentifier<'a> {
    RawIdentifier::Social { provider, subject }
}

#[test]
fn canonical_forms_are_as_expected() {
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
        let parts = (provider.to_ascii_lowercase().into(), subject);
        assert_eq!(identifier.social_parts(), Some(parts));
    }
    let url = Identifier::from_canonical(Kind::Url, "https://a/b".to_owned());
    assert_eq!(url.social_parts(), None);
}

#[test]
fn rejections_have_a_rule_and_a_position() {
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
        ("github", "58\u{200b}32", Rule::SocialSubjectInvisible, Some(2)),
        ("github", "\u{202e}58", Rule::SocialSubjectInvisible, Some(0)),
        ("http://idp.example.com", "1", Rule::SocialIssuer, None),
        ("HTTPS://idp.example.com", "1", Rule::SocialIssuer, None),
        ("https://", "1", Rule::SocialIssuer, None),
        ("https:///x", "1", Rule::SocialIssuer, None),
        ("https://idp.example.com?x", "1", Rule::SocialIssuer, None),
        ("https://idp.example.com#x", "1", Rule::SocialIssuer, None),
        ("https://joe@idp.example.com", "1", Rule::SocialIssuer, None),
        ("https://idp.example.com/a b", "1", Rule::SocialIssuer, None),
        ("https://ídp.example.com", "1", Rule::SocialIssuer, None),
        ("https://idp.example.com\\a", "1", Rule::SocialIssuer, None),
        ("github%2F", "1", Rule::SocialIssuer, None),
        ("https%3A%2F%2F%ff", "1", Rule::SocialIssuer, None),
    ];
    for (provider, subject, rule, position) in cases {
        assert_eq!(broken(raw(provider, subject)), (rule, position));
    }
}

#[test]
fn issuers_are_compared_exactly() {
    let cases = [
        ("https://accounts.google.com", "https%3A%2F%2Faccounts.google.com/42"),
        ("https://accounts.google.com/", "https%3A%2F%2Faccounts.google.com%2F/42"),
        ("https://Accounts.google.com", "https%3A%2F%2FAccounts.google.com/42"),
        (
            "https://id.example.com:8443/realms/a-b_c~d",
            "https%3A%2F%2Fid.example.com%3A8443%2Frealms%2Fa-b_c~d/42",
        ),
        ("https://id.example.com/a%20b", "https%3A%2F%2Fid.example.com%2Fa%2520b/42"),
    ];
    for (issuer, canonical) in cases {
        let identifier = check_any(raw(issuer, "42")).unwrap();
        assert_eq!(identifier.canonical(), canonical);
        assert_eq!(identifier.social_parts(), Some((issuer.into(), "42")));
        assert_eq!(Identifier::of_account(issuer, "42"), identifier);
        let (encoded, _) = canonical.split_once('/').unwrap();
        assert_eq!(form(raw(encoded, "42")), canonical, "typed in its encoded form");
        assert_eq!(raw(issuer, "42").to_string(), format!("social:{canonical}"));
    }
    let longest = format!("https://x.y/{}", "/".repeat(255 - 12));
    assert!(check_any(raw(&longest, &"s".repeat(255))).is_some());
    assert_eq!(broken(raw(&format!("{longest}/"), "1")), (Rule::SocialIssuer, None));
}
