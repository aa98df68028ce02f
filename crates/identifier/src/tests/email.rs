//! Tests of email addresses.

use std::time::{Duration, Instant};

use super::{broken, check_any, form};
use crate::rejection::Rule;
use crate::{Identifier, RawIdentifier, Rules, email_within};

fn email(typed: &str) -> String {
    form(RawIdentifier::Email(typed))
}

fn fault(typed: &str) -> (Rule, Option<usize>) {
    broken(RawIdentifier::Email(typed))
}

#[test]
fn canonical_forms_are_as_expected() {
    let cases = [
        ("Joe.Smith@Exämple.COM", "joe.smith@xn--exmple-cua.com"),
        ("joe@example.com", "joe@example.com"),
        ("JOE+Tag@Example.Com", "joe+tag@example.com"),
        ("j.o.e@gmail.com", "j.o.e@gmail.com"),
        ("root@localhost", "root@localhost"),
        ("joe@1.2.3d", "joe@1.2.3d"),
        ("joe@42.example", "joe@42.example"),
        ("joe@x.0xg", "joe@x.0xg"),
        ("!#$%&'*+-/=?^_`{|}~@x.y", "!#$%&'*+-/=?^_`{|}~@x.y"),
        ("joe@XN--EXMPLE-CUA.com", "joe@xn--exmple-cua.com"),
        ("joe@faß.de", "joe@xn--fa-hia.de"),
        ("joe@例え。テスト", "joe@xn--r8jz45g.xn--zckzah"),
        ("ΑΣ@x.y", "ας@x.y"),
        ("Jose\u{301}@x.y", "jos\u{e9}@x.y"),
        ("\u{212a}elvin@x.y", "kelvin@x.y"),
        ("用户@example.com", "用户@example.com"),
        ("🤖@x.y", "🤖@x.y"),
    ];
    for (typed, canonical) in cases {
        assert_eq!(email(typed), canonical);
        check_any(RawIdentifier::Email(typed));
    }
}

#[test]
fn rejections_have_a_rule_and_a_position() {
    let cases = [
        ("", Rule::EmailAtMissing, None),
        ("joe", Rule::EmailAtMissing, None),
        ("joe@a@b", Rule::EmailAtRepeated, Some(5)),
        ("\"joe smith\"@x.y", Rule::EmailQuoted, Some(0)),
        ("\"a@b\"@x.y", Rule::EmailQuoted, Some(0)),
        ("joe(work)@x.y", Rule::EmailComment, Some(3)),
        ("joe@(work)x.y", Rule::EmailComment, Some(4)),
        ("joe@[127.0.0.1]", Rule::EmailLiteral, Some(4)),
        ("jé@[IPv6:::1]", Rule::EmailLiteral, Some(3)),
        ("joe@127.0.0.1", Rule::EmailLiteral, Some(4)),
        ("é@0x7f.1", Rule::EmailLiteral, Some(2)),
        ("joe@0X7F", Rule::EmailLiteral, Some(4)),
        ("joe@x.0x", Rule::EmailLiteral, Some(4)),
        ("joe@example.42", Rule::EmailLiteral, Some(4)),
        ("joe@example。４２", Rule::EmailLiteral, Some(4)),
        ("@x.y", Rule::EmailLocalLength, Some(0)),
        (".joe@x.y", Rule::EmailDot, Some(0)),
        ("joe.@x.y", Rule::EmailDot, Some(3)),
        ("j..e@x.y", Rule::EmailDot, Some(2)),
        ("jo e@x.y", Rule::EmailCharacter, Some(2)),
        ("é\u{3000}@x.y", Rule::EmailCharacter, Some(1)),
        ("\u{85}@x.y", Rule::EmailCharacter, Some(0)),
        ("a\u{37e}b@x.y", Rule::EmailCharacter, None),
        ("\u{feff}joe@x.y", Rule::EmailInvisible, Some(0)),
        ("jo\u{202e}e@x.y", Rule::EmailInvisible, Some(2)),
        ("jo\u{200d}e@x.y", Rule::EmailInvisible, Some(2)),
        ("joe\u{e0041}@x.y", Rule::EmailInvisible, Some(3)),
        ("\u{3164}@x.y", Rule::EmailInvisible, Some(0)),
        ("joe\u{e000}@x.y", Rule::EmailUnassigned, Some(3)),
        ("joe\u{ffff}@x.y", Rule::EmailUnassigned, Some(3)),
        ("\u{301}@x.y", Rule::EmailMark, Some(0)),
        ("\u{301}joe@x.y", Rule::EmailMark, Some(0)),
        ("joe@", Rule::EmailDomain, Some(4)),
        ("joe@x..y", Rule::EmailDomain, Some(4)),
        ("joe@x.y.", Rule::EmailDomain, Some(4)),
        ("joe@-x.y", Rule::EmailDomain, Some(4)),
        ("joe@x_y.z", Rule::EmailDomain, Some(4)),
        ("joe@ab--cd.com", Rule::EmailDomain, Some(4)),
        ("joe@xn--a.com", Rule::EmailDomain, Some(4)),
        (" joe@x.y", Rule::EmailCharacter, Some(0)),
        ("joe@x.y ", Rule::EmailDomain, Some(4)),
    ];
    for (typed, rule, position) in cases {
        assert_eq!(fault(typed), (rule, position), "{typed}");
    }
}

#[test]
fn lengths_are_of_the_canonical_form() {
    let local = "a".repeat(64);
    assert_eq!(email(&format!("{local}@x.y")), format!("{local}@x.y"));
    assert_eq!(fault(&format!("{local}a@x.y")), (Rule::EmailLocalLength, None));
    // 33 letters that take two bytes each.
    let two_bytes = "é".repeat(33);
    assert_eq!(fault(&format!("{two_bytes}@x.y")), (Rule::EmailLocalLength, None));
    let label = "b".repeat(63);
    let domain = format!("{label}.{label}.{}", "c".repeat(61));
    let longest = format!("{local}@{domain}");
    assert_eq!(longest.len(), 254);
    assert_eq!(email(&longest), longest);
    assert_eq!(fault(&format!("{longest}c")), (Rule::EmailLength, None));
    assert_eq!(fault(&format!("joe@{label}b.com")), (Rule::EmailDomain, Some(4)));
    assert_eq!(fault(&"@".repeat(4097)), (Rule::TooLong, None));
}

/// Domains that the cases reject for code points that were assigned after their version.
const ASSIGNED_SINCE: [&str; 3] =
    ["xn--5cb172r175fug38a.xn--mlj", "xn--9-i0j5967eg3qz.ss", "xn--t92s.xn--znb.xn--5-y88f"];

/// Unicode's own cases for UTS 46 (IdnaTestV2), as the domain of an address. Version 2 accepts all
/// of them, the present version those that IDNA 2008 allows.
#[test]
fn domains_pass_idna_test_v2() {
    let cases = include_str!("data/idna_test_v2.tsv");
    let mut seen = (0, 0, 0);
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        let (source, expected) = line.split_once('\t').unwrap();
        let source = unescape(source);
        let typed = format!("a@{source}");
        if expected.is_empty() {
            seen.0 += 1;
            if let Ok(accepted) = Identifier::parse(RawIdentifier::Email(&typed)) {
                let domain = &accepted.canonical()[2..];
                assert!(ASSIGNED_SINCE.contains(&domain), "{source}");
            }
        } else if expected.len() <= 252 {
            seen.1 += 1;
            // The rules reject some domains that UTS 46 takes.
            let parsed = Identifier::parse(RawIdentifier::Email(&typed));
            let form = parsed.as_ref().map(Identifier::canonical);
            assert!(form.is_err() || form == Ok(&format!("a@{expected}")), "{source}");
        }
        let accepted = check_any(RawIdentifier::Email(&typed));
        seen.2 += usize::from(accepted.is_some());
        assert!(accepted.is_none_or(|email| !expected.is_empty() || {
            ASSIGNED_SINCE.contains(&&email.canonical()[2..])
        }));
    }
    assert!(seen.0 > 5000 && seen.1 > 500 && seen.2 > 100, "{seen:?}");
}

/// The `\uXXXX` of IdnaTestV2.
fn unescape(text: &str) -> String {
    let mut pieces = text.split("\\u");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at(4);
        let code = u32::from_str_radix(digits, 16).unwrap();
        plain.push(char::from_u32(code).unwrap());
        plain.push_str(rest);
    }
    plain
}

#[test]
fn more_than_an_address_has_rules_of_its_own() {
    let cases = [
        ("<joe@x.y>", Rule::EmailName, Some(0)),
        ("Joe Smith <joe@x.y>", Rule::EmailName, Some(10)),
        ("\"Smith, Joe\" <joe@x.y> ", Rule::EmailName, Some(13)),
        ("Joe (work) <joe@x.y>", Rule::EmailName, Some(11)),
        ("Jürgen <j@x.y>, Zoë <z@x.y>", Rule::EmailName, Some(7)),
        ("joe<smith@x.y", Rule::EmailCharacter, Some(3)),
        ("joe@x.y>", Rule::EmailDomain, Some(4)),
        ("mailto:joe@x.y", Rule::EmailScheme, Some(0)),
        ("MailTo:joe@x.y?subject=a", Rule::EmailScheme, Some(0)),
        ("joe@x.y, ann@x.y", Rule::EmailSeveral, Some(7)),
        ("joe@x.y;ann@x.y", Rule::EmailSeveral, Some(7)),
        ("joe@é.y ann@x.y", Rule::EmailSeveral, Some(7)),
    ];
    for (typed, rule, position) in cases {
        assert_eq!(fault(typed), (rule, position), "{typed}");
    }
}

#[test]
fn the_address_in_a_longer_text_is_found() {
    for (typed, address) in [
        ("Joe Smith <Joe@x.y>", Some("Joe@x.y")),
        (" \"Smith, Joe\" < joe@x.y > ", Some("joe@x.y")),
        ("<joe@x.y>", Some("joe@x.y")),
        ("Jörg <jörg@exämple.de>", Some("jörg@exämple.de")),
        ("mailto:joe@x.y", Some("joe@x.y")),
        ("Joe <MAILTO:joe@x.y?subject=Hi>", Some("joe@x.y")),
        ("joe@x.y", None),
        (" joe@x.y ", None),
        ("<>", None),
        ("Joe <joe at x.y>", None),
        ("mailto:", None),
        ("mailto:joe", None),
        ("Joe <joe@x.y> or Ann", None),
        ("", None),
    ] {
        assert_eq!(email_within(typed), address, "{typed}");
        assert_eq!(address.and_then(email_within), None);
    }
}

/// The advice fits what was typed.
#[test]
fn advice_says_what_to_leave_out() {
    let advice = |typed| Identifier::parse(RawIdentifier::Email(typed)).unwrap_err().to_string();
    let name = advice("canary <canary@x.y>");
    assert!(name.ends_with("at character 8; write only what is between < and >"), "{name}");
    let scheme = advice("mailto:canary@x.y");
    assert!(scheme.ends_with("leave out mailto: in front of the address"), "{scheme}");
    assert!(![name, scheme].iter().any(|text| text.contains("canary")));
}

/// An ordinary address takes less than two microseconds, in a build with optimisation.
#[test]
fn an_ordinary_address_is_parsed_fast() {
    let budget = Duration::from_micros(if cfg!(debug_assertions) { 40 } else { 2 });
    let typed = RawIdentifier::Email("Joe.Smith+news@Mail.Example.com");
    let time = || {
        let start = Instant::now();
        let parsed = Rules::PRESENT.parse(typed);
        (start.elapsed(), parsed).0
    };
    assert!((0..10_000).any(|_| time() < budget), "{:?}", time());
}
