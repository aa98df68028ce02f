//! Tests of profile URLs.

use super::{broken, check_any, form};
use crate::rejection::Rule;
use crate::{Identifier, RawIdentifier};

fn url(typed: &str) -> String {
    form(RawIdentifier::Url(typed))
}

#[test]
fn canonical_forms_are_as_expected() {
    let cases = [
        (
            "https://www.LinkedIn.com/in/joe.e.smith/?trk=x",
            "https://www.linkedin.com/in/joe.e.smith",
        ),
        ("http://example.com/joe", "https://example.com/joe"),
        ("HTTP://EXAMPLE.COM:80/Joe", "https://example.com/Joe"),
        ("https://example.com:443/", "https://example.com"),
        ("https://example.com", "https://example.com"),
        ("https://example.com.///", "https://example.com"),
        ("https://example.com./joe#top", "https://example.com/joe"),
        ("https://exämple.com/ü", "https://xn--exmple-cua.com/%C3%BC"),
        ("https://x.y/%c3%bc", "https://x.y/%C3%BC"),
        ("https://x.y/%7Ejoe%2Dx%41", "https://x.y/~joe-xA"),
        ("https://x.y/a%2fb%2F", "https://x.y/a%2Fb%2F"),
        ("https://x.y/%252e%252e/a", "https://x.y/%252e%252e/a"),
        ("https://x.y/a/%2e%2E/b/./c/.", "https://x.y/b/c"),
        ("https://x.y/a//b//", "https://x.y/a//b"),
        (" https:\\\\x.y\\a\n", "https://x.y/a"),
        ("https:x.y/%41#%", "https://x.y/A"),
        ("https://0x7f.1/", "https://127.0.0.1"),
        ("https://[::0:1]/a", "https://[::1]/a"),
        ("https://@x.y/", "https://x.y"),
    ];
    for (typed, canonical) in cases {
        assert_eq!(url(typed), canonical);
        check_any(RawIdentifier::Url(typed));
    }
}

#[test]
fn rejections_have_a_rule_and_a_position() {
    let cases = [
        ("", Rule::UrlSyntax, None),
        ("https://", Rule::UrlSyntax, None),
        ("https://x.y:99999/", Rule::UrlSyntax, None),
        ("ftp://x.y/", Rule::UrlScheme, Some(0)),
        ("javascript:alert(1)", Rule::UrlScheme, Some(0)),
        ("https://joe@x.y/", Rule::UrlUserInfo, None),
        ("https://:secret@x.y/", Rule::UrlUserInfo, None),
        ("https://x.y:8443/", Rule::UrlPort, None),
        ("http://x.y:443/", Rule::UrlPort, None),
        ("https://x.y:80/", Rule::UrlPort, None),
        ("https://x..y/", Rule::UrlHost, None),
        ("https://x.y../", Rule::UrlHost, None),
        ("https://x.y/100%", Rule::UrlEscape, Some(15)),
        ("https://é.y/%4", Rule::UrlEscape, Some(12)),
        ("https://x.y/%41%zz", Rule::UrlEscape, Some(15)),
        ("https://x.y/%+1", Rule::UrlEscape, Some(12)),
    ];
    for (typed, rule, position) in cases {
        assert_eq!(broken(RawIdentifier::Url(typed)), (rule, position), "{typed}");
    }
}

#[test]
fn length_is_of_the_canonical_form() {
    let longest = format!("https://x.y/{}", "a".repeat(2048 - 12));
    assert_eq!(url(&format!("{longest}/#f")), longest);
    let fault = broken(RawIdentifier::Url(&format!("{longest}a")));
    assert_eq!(fault, (Rule::UrlLength, None));
}

/// WHATWG's own cases (urltestdata) for http and https without a base.
#[test]
fn urltestdata_parses_as_expected() {
    let data = include_str!("data/whatwg_url.json");
    let cases: Vec<[Option<String>; 6]> = serde_json::from_str(data).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for case in &cases {
        let [Some(input), parts @ ..] = case else {
            panic!("a case without an input");
        };
        let expected = expected(parts);
        let parsed = Identifier::parse(RawIdentifier::Url(input)).ok();
        match parsed {
            Some(_) => accepted += 1,
            None => refused += 1,
        }
        check_any(RawIdentifier::Url(input));
        // The rules reject more, and keep the query.
        let address = parsed.as_ref().map(|url| url.canonical().split('?').next().unwrap());
        let address = address.map(|address| address.trim_end_matches('/'));
        assert!(address.is_none() || address == expected.as_deref(), "{input}: {address:?}");
    }
    assert!(accepted > 70 && refused > 100, "{accepted} {refused}");
}

/// The canonical form of the parts that WHATWG expects; `None` if the rules reject them.
fn expected(parts: &[Option<String>]) -> Option<String> {
    let part = |at: usize| parts[at].as_deref().unwrap_or_default();
    let [protocol, user_info, host, port, path] = [0, 1, 2, 3, 4].map(part);
    let refused = !matches!(protocol, "http:" | "https:") || user_info.len() + port.len() > 0;
    let host = host.strip_suffix('.').unwrap_or(host);
    if refused || host.split('.').any(str::is_empty) {
        return None;
    }
    let path = rewrite_escapes(path)?;
    Some(format!("https://{host}{}", path.trim_end_matches('/')))
}

/// RFC 3986, section 6.2.2, independently of the code under test.
fn rewrite_escapes(path: &str) -> Option<String> {
    let escape = regex::Regex::new("%([0-9A-Fa-f]{2})?").unwrap();
    if escape.find_iter(path).any(|found| found.len() == 1) {
        return None;
    }
    let unreserved =
        regex::Regex::new(r"^%(2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])$")
            .unwrap();
    let rewrite = |found: &regex::Captures<'_>| {
        let code = u8::from_str_radix(&found[1], 16).unwrap();
        if unreserved.is_match(&found[0]) {
            char::from(code).to_string()
        } else {
            found[0].to_uppercase()
        }
    };
    Some(escape.replace_all(path, rewrite).into_owned())
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of addresses")]
fn the_addresses_of_a_profile_have_one_canonical_form() {
    let cases: [(&str, &[&str]); 7] = [
        (
            "https://www.linkedin.com/in/joe-smith",
            &[
                "http://linkedin.com/in/Joe-Smith/",
                "https://de.linkedin.com/in/joe-smith?trk=x",
                "https://m.linkedin.com/IN/joe-smith#about",
            ],
        ),
        (
            "https://www.linkedin.com/in/j%C3%B6rg-a",
            &["https://linkedin.com/in/jörg-A", "https://linkedin.com/in/J%c3%b6rg-a"],
        ),
        (
            "https://github.com/octocat",
            &["https://www.github.com/OctoCat", "http://GITHUB.com/octocat/"],
        ),
        (
            "https://www.facebook.com/joesmith",
            &[
                "https://facebook.com/Joe.Smith",
                "https://m.facebook.com/j.o.e.smith?ref=x",
                "https://fb.com/joesmith",
            ],
        ),
        (
            "https://www.facebook.com/1234",
            &[
                "https://facebook.com/profile.php?id=1234",
                "https://m.facebook.com/Profile.php?ref=x&id=1234",
            ],
        ),
        (
            "https://x.com/joe_smith",
            &[
                "https://twitter.com/Joe_Smith",
                "https://mobile.twitter.com/joe_smith?s=21",
                "https://www.x.com/joe_smith/",
            ],
        ),
        (
            "https://www.instagram.com/joe.smith",
            &["https://instagram.com/Joe.Smith/", "https://m.instagram.com/joe.smith"],
        ),
    ];
    for (address, others) in cases {
        for typed in others.iter().chain([&address]) {
            assert_eq!(url(typed), address, "{typed}");
            check_any(RawIdentifier::Url(typed));
        }
    }
}
