//! Tests of addresses of pages, phones, domains and guards.

use super::{broken, check_any, form};
use crate::rejection::Rule;
use crate::{Identifier, PHONE_METADATA, RawIdentifier};

fn assert_forms<'a>(cases: &[(&'a str, &str)], raw: impl Fn(&'a str) -> RawIdentifier<'a>) {
    for (typed, canonical) in cases {
        assert_eq!(form(raw(typed)), *canonical, "{typed}");
        check_any(raw(typed));
    }
}

fn assert_rejected<'a>(
    cases: &[(&'a str, Rule, Option<usize>)],
    raw: impl Fn(&'a str) -> RawIdentifier<'a>,
) {
    for (typed, rule, position) in cases {
        assert_eq!(broken(raw(typed)), (*rule, *position), "{typed}");
        check_any(raw(typed));
    }
}

#[test]
fn the_query_stays_without_tracking_parameters() {
    let cases = [
        ("https://x.y/?p=123", "https://x.y/?p=123"),
        ("https://x.y?p=123", "https://x.y/?p=123"),
        ("https://x.y/a/?p=123", "https://x.y/a?p=123"),
        ("https://x.y/a?", "https://x.y/a"),
        ("https://x.y/?", "https://x.y"),
        ("https://x.y/?&&", "https://x.y"),
        ("https://x.y/a?b=2&a=1", "https://x.y/a?b=2&a=1"),
        ("https://x.y/a?a=1&&b", "https://x.y/a?a=1&b"),
        ("https://x.y/a?utm_source=x&id=1&FBCLID=2&gclid=3", "https://x.y/a?id=1"),
        ("https://x.y/a?utm%5Fsource=x", "https://x.y/a"),
        ("https://x.y/a?fbclid=1#top", "https://x.y/a"),
        ("https://x.y/a?id=%7e%c3%bc", "https://x.y/a?id=~%C3%BC"),
        ("https://x.y/a?id=ü", "https://x.y/a?id=%C3%BC"),
        ("https://x.y/a?ID=1", "https://x.y/a?ID=1"),
        ("https://x.y/a#", "https://x.y/a"),
        ("https://x.y/#", "https://x.y"),
        ("https://x.y/a#about", "https://x.y/a"),
        ("https://x.y/a#:~:text=a/b", "https://x.y/a"),
        ("https://x.y/a#about:~:text=a/b&text=@c", "https://x.y/a"),
        ("https://x.y/#:~:text=a", "https://x.y"),
        ("https://xn--i-7iq%2Ews/joe", "https://xn--i-7iq.ws/joe"),
        ("https://i❤.ws/joe", "https://xn--i-7iq.ws/joe"),
    ];
    assert_forms(&cases, RawIdentifier::Url);
}

#[test]
fn parameters_that_identify_stay_on_known_pages() {
    let cases = [
        (
            "https://scholar.google.de/citations?hl=de&user=AbC-_1",
            "https://scholar.google.com/citations?user=AbC-_1",
        ),
        (
            "https://scholar.google.co.uk/citations/?user=AbC&utm_id=1",
            "https://scholar.google.com/citations?user=AbC",
        ),
        ("https://scholar.google.com/scholar?q=a", "https://scholar.google.com/scholar?q=a"),
        (
            "https://news.ycombinator.com/user?id=Joe&x=1",
            "https://news.ycombinator.com/user?id=Joe",
        ),
        (
            "https://de.linkedin.com/profile/view?trk=1&id=42",
            "https://www.linkedin.com/profile/view?id=42",
        ),
        (
            "https://f.y/bb/memberlist.php?sid=5f&u=7&mode=viewprofile",
            "https://f.y/bb/memberlist.php?mode=viewprofile&u=7",
        ),
        ("https://f.y/memberlist.php?mode=team", "https://f.y/memberlist.php?mode=team"),
        ("https://f.y/member.php?s=5f&u=7", "https://f.y/member.php?u=7"),
        (
            "https://f.y/member.php?uid=7&action=profile",
            "https://f.y/member.php?action=profile&uid=7",
        ),
        ("https://f.y/profile.php?id=7&a=1", "https://f.y/profile.php?id=7"),
        ("https://f.y/profile.php?id=joe", "https://f.y/profile.php?id=joe"),
        ("https://github.com/joe/Repo?tab=x", "https://github.com/joe/Repo"),
    ];
    assert_forms(&cases, RawIdentifier::Url);
}

#[test]
fn the_addresses_of_a_profile_have_one_form() {
    let cases = [
        ("https://X.com/@Joe_S", "https://x.com/joe_s"),
        ("https://twitter.com/%40joe_s?s=20", "https://x.com/joe_s"),
        ("https://instagram.com/@joe.s/", "https://www.instagram.com/joe.s"),
        ("https://facebook.com/profile.php?ref=a&id=42", "https://www.facebook.com/42"),
        ("https://m.facebook.com/Joe.Smith?ref=a", "https://www.facebook.com/joesmith"),
        ("https://linkedin.com/in/jörg-A", "https://www.linkedin.com/in/j%C3%B6rg-a"),
        ("https://linkedin.com/in/help", "https://www.linkedin.com/in/help"),
        ("https://github.com/joe_acme", "https://github.com/joe_acme"),
        // Not names.
        ("https://x.com/joe-s", "https://x.com/joe-s"),
        ("https://x.com/@@joe", "https://x.com/@@joe"),
        ("https://x.com/abcdefghijklmnop", "https://x.com/abcdefghijklmnop"),
        ("https://github.com/@joe", "https://github.com/@joe"),
        ("https://x.com/i/user/42?s=1", "https://x.com/i/user/42"),
        ("https://deu.linkedin.com/in/Joe", "https://deu.linkedin.com/in/Joe"),
    ];
    assert_forms(&cases, RawIdentifier::Url);
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of addresses")]
fn addresses_that_name_nobody_are_rejected() {
    let cases = [
        ("https://matrix.to/#/@joe:x.y", Rule::UrlFragment, Some(18)),
        ("https://x.y/a#/joe", Rule::UrlFragment, Some(13)),
        ("https://x.y/a#!joe", Rule::UrlFragment, Some(13)),
        ("https://x.y/a#%21joe", Rule::UrlFragment, Some(13)),
        ("https://x.y/a#@joe", Rule::UrlFragment, Some(13)),
        ("https://x.y/a#user/joe", Rule::UrlFragment, Some(13)),
        ("https://x.y/a#id=5", Rule::UrlFragment, Some(13)),
        ("https://x.y/a#/joe:~:text=a", Rule::UrlFragment, Some(13)),
        ("https://x.y/#about:~:text=a", Rule::UrlFragment, Some(12)),
        ("https://é.y/#about", Rule::UrlFragment, Some(12)),
        ("https://x.y/?utm_id=1#about", Rule::UrlFragment, Some(21)),
        ("https://matrix.to", Rule::UrlWrapper, None),
        ("https://www.linkedin.com/authwall?sessionRedirect=a", Rule::UrlWrapper, None),
        ("https://l.facebook.com/l.php?u=a", Rule::UrlWrapper, None),
        ("https://www.facebook.com/login/?next=a", Rule::UrlWrapper, None),
        ("https://instagram.com/accounts/login/?next=a", Rule::UrlWrapper, None),
        ("https://x.com/i/flow/login", Rule::UrlWrapper, None),
        ("https://twitter.com/intent/user?user_id=1", Rule::UrlWrapper, None),
        ("https://eur03.safelinks.protection.outlook.com/?url=a", Rule::UrlWrapper, None),
        ("https://urldefense.com/v3/__https://x.y__", Rule::UrlWrapper, None),
        ("https://www.google.com/url?q=a", Rule::UrlWrapper, None),
        ("https://www.google.co.uk/url?q=a", Rule::UrlWrapper, None),
        ("https://t.co/abc", Rule::UrlWrapper, None),
        ("https://lnkd.in/abc", Rule::UrlWrapper, None),
        ("https://facebook.com/photo.php?fbid=1", Rule::UrlPage, None),
        ("https://facebook.com/photo/?fbid=1", Rule::UrlPage, None),
        ("https://facebook.com/home.php", Rule::UrlPage, None),
        ("https://facebook.com/profile.php", Rule::UrlPage, None),
        ("https://facebook.com/profile.php?id=joe", Rule::UrlPage, None),
        ("https://facebook.com/s.e.a.r.c.h", Rule::UrlPage, None),
        ("https://facebook.com", Rule::UrlPage, None),
        ("https://x.com/search?q=joe", Rule::UrlPage, None),
        ("https://x.com/@explore", Rule::UrlPage, None),
        ("https://x.com/@", Rule::UrlPage, None),
        ("https://x.com/Settings/profile", Rule::UrlPage, None),
        ("https://instagram.com/p", Rule::UrlPage, None),
        ("https://github.com/settings", Rule::UrlPage, None),
        ("https://github.com/share", Rule::UrlPage, None),
        ("https://www.linkedin.com/in", Rule::UrlPage, None),
        ("https://www.linkedin.com/in/Me", Rule::UrlPage, None),
        ("https://linkedin.com/profile/view", Rule::UrlPage, None),
        ("https://scholar.google.com/citations?hl=en", Rule::UrlPage, None),
        ("https://news.ycombinator.com/user?id=", Rule::UrlPage, None),
        ("https://x.y/a b", Rule::UrlBlank, Some(13)),
        (" https://x.y/ü b ", Rule::UrlBlank, Some(14)),
        ("https://x.y/a\tb", Rule::UrlBlank, Some(13)),
        ("https://x.y/a\u{a0}b", Rule::UrlBlank, Some(13)),
        ("https://x.y/a?b=%zz", Rule::UrlEscape, Some(16)),
        ("https://x.y/%zz?b=%zz", Rule::UrlEscape, Some(12)),
        ("https://x.y¹/", Rule::UrlHost, None),
        ("https://joe™.com/", Rule::UrlHost, None),
        ("https://joe%E2%84%A2.com/", Rule::UrlHost, None),
        ("https://x.y%C2%B9/", Rule::UrlHost, None),
    ];
    assert_rejected(&cases, RawIdentifier::Url);
}

/// Two people whose addresses differ in any part that identifies have two identities.
#[test]
fn no_two_people_share_an_address() {
    let pairs = [
        [
            "https://scholar.google.com/citations?user=a",
            "https://scholar.google.com/citations?user=A",
        ],
        ["https://news.ycombinator.com/user?id=a", "https://news.ycombinator.com/user?id=b"],
        [
            "https://f.y/memberlist.php?mode=viewprofile&u=1",
            "https://f.y/memberlist.php?mode=viewprofile&u=2",
        ],
        ["https://x.y/?author=1", "https://x.y/?author=2"],
        ["https://x.y/a?1", "https://x.y/a?2"],
    ];
    for [one, other] in pairs {
        assert_ne!(form(RawIdentifier::Url(one)), form(RawIdentifier::Url(other)));
    }
}

fn phone(number: &str) -> RawIdentifier<'_> {
    let (number, region) = number.split_once('/').unwrap_or((number, ""));
    RawIdentifier::Phone { number, region }
}

#[test]
fn telephone_uris_are_numbers() {
    let cases = [
        ("tel:+1-415-555-2300", "+14155552300"),
        ("TEL:+14155552300", "+14155552300"),
        ("tel:415-555-2300/US", "+14155552300"),
        ("tel:555-2300;phone-context=+1-415", "+14155552300"),
        ("tel:(415)5552300;phone-context=+1", "+14155552300"),
    ];
    assert_forms(&cases, phone);
    let rejected = [
        ("tel:+1-415-555-2300;ext=12", Rule::PhoneExtension, Some(19)),
        ("tel:+1-415-555-2300;isub=12", Rule::PhoneExtension, Some(19)),
        ("tel:2300;phone-context=example.com/US", Rule::PhoneExtension, Some(8)),
        ("tel:555-23x00;phone-context=+1-415", Rule::PhoneExtension, None),
        ("tel:tel:+14155552300", Rule::PhoneLetter, Some(4)),
        ("sip:+14155552300", Rule::PhoneLetter, Some(0)),
        ("tel:", Rule::PhoneRegionMissing, None),
    ];
    assert_rejected(&rejected, phone);
}

#[test]
fn decimal_numbers_are_rejected() {
    let cases = [
        ("14155552300.0/US", Rule::PhoneDecimal, Some(11)),
        ("+14155552300.0", Rule::PhoneDecimal, Some(12)),
        ("14155552300．０ /US", Rule::PhoneDecimal, Some(11)),
        ("tel:+14155552300.0", Rule::PhoneDecimal, Some(16)),
    ];
    assert_rejected(&cases, phone);
    assert_forms(&[("01.42.68.53.00/FR", "+33142685300")], phone);
}

/// Numbers of both readings, found by trying.
#[test]
fn numbers_with_two_readings_are_rejected_with_both() {
    let cases = ["4941317890/DE", "39 0 12 34 56/IT"];
    let rejections = cases.map(|typed| Identifier::parse(phone(typed)));
    let ambiguous = rejections.iter().flat_map(|parsed| parsed.as_ref().err());
    assert!(ambiguous.clone().any(|rejection| rejection.rule() == Rule::PhoneAmbiguous));
    let message = Identifier::parse(phone(cases[0])).unwrap_err().to_string();
    assert_eq!(
        message,
        "not a valid phone: rule phone-ambiguous; it reads as +49 49… and as +49 …; write it \
         with + and the country code in front"
    );
    let both = ["+494941317890", "+4941317890"].map(|number| form(phone(number)));
    assert_ne!(both[0], both[1]);
    // One reading only.
    assert_forms(&[("44 20 7946 0958/GB", "+442079460958")], phone);
}

/// The metadata that the crate `phonenumber` has.
#[test]
fn the_version_of_the_metadata_is_stated() {
    let lock = include_str!("../../../../Cargo.lock");
    let (_, package) = lock.split_once("name = \"phonenumber\"\n").unwrap();
    let line = package.lines().next().unwrap();
    assert!(line.ends_with(&format!("+{PHONE_METADATA}\"")), "{line}");
}

#[test]
fn domains_have_the_characters_of_idna_2008() {
    let accepted = [
        ("joe@Exämple.COM", "joe@xn--exmple-cua.com"),
        ("joe@faß.de", "joe@xn--fa-hia.de"),
        ("joe@ＥＸＡＭＰＬＥ．ｃｏｍ", "joe@example.com"),
        ("joe@例え。テスト", "joe@xn--r8jz45g.xn--zckzah"),
        ("joe@ﾃｽﾄ.jp", "joe@xn--zckzah.jp"),
        ("joe@col·lecció.cat", "joe@xn--collecci-dta20a.cat"),
        ("joe@テ・スト.jp", "joe@xn--qckj4dza.jp"),
        ("joe@نامه\u{200c}ای.com", "joe@xn--mgba3gch31f060k.com"),
        ("joe@Σας.gr", "joe@xn--3xa3bc.gr"),
        ("joe@xn--exmple-cua.com", "joe@xn--exmple-cua.com"),
    ];
    for (typed, canonical) in accepted {
        let parsed = Identifier::parse(RawIdentifier::Email(typed));
        assert!(parsed.is_ok(), "{typed}: {parsed:?}");
        check_any(RawIdentifier::Email(typed));
        if canonical.is_ascii() && !typed.contains(['・', '\u{200c}', 'Σ', '·']) {
            assert_eq!(form(RawIdentifier::Email(typed)), canonical);
        }
    }
    let rejected = [
        ("joe@i❤.ws", Rule::EmailDomainCharacter, Some(4)),
        ("joe@xn--i-7iq.ws", Rule::EmailDomainCharacter, Some(4)),
        ("joe@example.com”", Rule::EmailDomainCharacter, Some(4)),
        ("joe@example.com’", Rule::EmailDomainCharacter, Some(4)),
        ("joe@a–b.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@€.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@😀.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@a·b.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@a・b.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@بـب.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@example.com¹", Rule::EmailDomainCharacter, Some(15)),
        ("joe@exampleª.com", Rule::EmailDomainCharacter, Some(11)),
        ("joe@example™.com", Rule::EmailDomainCharacter, Some(11)),
        ("joe@①.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@ﬁx.com", Rule::EmailDomainCharacter, Some(4)),
        ("joe@exam\u{ad}ple.com", Rule::EmailDomainCharacter, Some(8)),
    ];
    assert_rejected(&rejected, RawIdentifier::Email);
}

/// Sigma and final sigma are one letter: the two handles guard each other.
#[test]
fn both_sigmas_have_one_guard() {
    for [one, other] in [["νίκος", "νίκοσ"], ["ΣΑΣ", "σας"]] {
        let [one, other] = [one, other].map(|typed| {
            let handle = Identifier::parse(RawIdentifier::Handle(typed)).unwrap();
            check_any(RawIdentifier::Handle(typed));
            (handle.guard().unwrap(), handle)
        });
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
    }
}
