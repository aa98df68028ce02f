//! Tests of properties of all inputs.

use proptest::prelude::*;

use super::check_any;
use crate::key::IdentityKey;
use crate::rejection::Rule;
use crate::{Identifier, MAX_INPUT_BYTES, RawIdentifier, email, handle};

/// Characters with special rules, and any others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "[a-zA-Z0-9.@+_-]{0,20}",
        "[@＠+＋a-cA-CＡ-ＣäÄßΣςİıǅÅ\u{212a}\u{301}\u{307}\u{345}\u{37e}\u{200d}﹫ﾊﾞ]{0,12}",
        "[а-яА-Яα-ωΑ-Ωא-תا-يぁ-んァ-ン一-龥가-힣\u{900}-\u{97f}]{0,12}",
        "\\PC{0,16}",
        any::<String>(),
    ]
}

fn email_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.\"(-]{0,8}@[a-zA-Z0-9.-]{0,12}",
        "[a-z]{60,68}@([a-z]{1,64}\\.){0,5}[a-z]{1,64}",
        "[a-z]{1,3}@[xX][nN]--[a-z0-9-]{0,9}",
        (text(), text()).prop_map(|(local, domain)| format!("{local}@{domain}")),
        text(),
    ]
}

fn url_text() -> impl Strategy<Value = String> {
    let path = "([a-zA-Z.]|/|\\\\|%2[eEfF5]|%7[eE]|%|[ \"'^|{}~;:@é\t]){0,12}";
    prop_oneof![
        ("[hH]ttps?:(//|/|\\\\)?[a-zA-Z.]{1,8}", path).prop_map(|(host, path)| host + &path),
        "https?://[a-z%0-9A-F.:@\\[\\]-]{1,12}(/[a-z]{0,3}){0,3}(\\?[a-z%]*)?(#[a-z%]*)?",
        "https://(www\\.|m\\.|[a-z]{2}\\.)?(linkedin|github|facebook|x|instagram)\\.com/(in/)?([a-zA-Z.%]|%2[eE]|é|/|\\?id=1){0,9}",
        "https://(x|www\\.instagram)\\.com/(@|%40){0,2}[a-z_.]{0,6}(\\?s=1)?(#[a-z/!@=]{0,3})?",
        concat!(
            "https://(scholar\\.google\\.(de|com|co\\.uk)|news\\.ycombinator\\.com|f\\.y)/",
            "(citations|user|a/memberlist\\.php|member\\.php|profile\\.php)?/?\\?",
            "((user|id|u|mode|action|uid|utm_id|fbclid|hl|sid)",
            "(=(viewprofile|profile|[0-9a-z%/?]{0,3}))?&?){0,4}",
        ),
        concat!(
            "(https?://)?(www\\.|m\\.|de\\.|pt-br\\.|old\\.)?",
            "(linkedin\\.com|fb\\.com|twitter\\.com|threads\\.net|tiktok\\.com",
            "|youtube\\.com|bsky\\.app|reddit\\.com|twitch\\.com|pinterest\\.co\\.uk",
            "|telegram\\.me|lastfm\\.de|imdb\\.com|myspace\\.de",
            "|joe\\.blogspot\\.fr|instagram\\.com|x\\.y)",
            "(/(de|comm|in|mwlite|pg|p|people|stories|u|user|c|channel|name|profile|@|%40|s|t|nm1",
            "|media|reels|post|posts|comments|status|[a-zA-Z0-9._@-]{0,5}|[0-9]{1,6})){0,5}/?",
            "(\\?(t=1|id=2|v=3))?(#a)?",
        ),
        text(),
    ]
}

fn phone_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+＋]?[0-9() .-]{0,18}",
        concat!(
            "[\u{202a}\u{2068}\u{200e}\u{feff} ]{0,3}(tel:)?",
            "[(]?[+＋]?[0-9() .-]{0,18}[\u{202c}\u{2069}\u{200e} ]{0,3}",
        ),
        text(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_email(typed in email_text()) {
        check_any(RawIdentifier::Email(&typed));
    }

    #[test]
    fn any_handle(typed in text()) {
        if let Some(handle) = check_any(RawIdentifier::Handle(&typed)) {
            let canonical = handle.canonical();
            prop_assert!(!canonical.contains('@') && !canonical.starts_with('+'));
            if let Some(guard) = handle.guard() {
                prop_assert_ne!(IdentityKey::of_guard("a", &guard), IdentityKey::new("a", &handle));
            }
        }
    }

    #[test]
    fn any_phone(typed in phone_text(), region in "[A-Z]{0,2}") {
        check_any(RawIdentifier::Phone { number: &typed, region: &region });
    }

    #[test]
    fn any_social(provider in prop_oneof!["[a-zA-Z0-9._-]{0,66}", "https://[a-z%/:.@0-9?-]{0,12}", text()], subject in text()) {
        check_any(RawIdentifier::Social { provider: &provider, subject: &subject });
    }

    #[test]
    fn any_url(typed in url_text()) {
        check_any(RawIdentifier::Url(&typed));
    }

    /// The fast path for ASCII agrees with the rules, or does not apply.
    #[test]
    fn quick_email_is_the_same(typed in email_text()) {
        if let Some(quick) = email::quick(&typed) {
            prop_assert_eq!(email::canonical(&typed, &mut ()).ok(), Some(quick));
        }
    }

    #[test]
    fn quick_handle_is_the_same(typed in text()) {
        if let Some(quick) = handle::quick(&typed) {
            prop_assert_eq!(handle::canonical(&typed, &mut ()).ok(), Some(quick));
        }
    }

    /// Ordinary input takes the fast path.
    #[test]
    fn quick_takes_ordinary_input(
        name in "[a-zA-Z][a-zA-Z0-9+_]{0,20}",
        domain in "[a-zA-Z][a-zA-Z0-9]{0,9}(\\.[a-z]{2,6}){0,3}",
    ) {
        let joined = format!("{name}@{domain}");
        prop_assert_eq!(email::quick(&joined), Some(joined.to_ascii_lowercase()));
        prop_assert_eq!(handle::quick(&name), Some(name.to_ascii_lowercase()));
    }
}

/// Tries all pairs of ASCII characters around an ordinary one, at each position with rules.
#[test]
fn quick_is_the_same_for_all_short_ascii() {
    for a in 0..128u8 {
        for b in 0..128u8 {
            let (a, b) = (char::from(a), char::from(b));
            for typed in [format!("{a}{b}"), format!("{a}x{b}"), format!("{a}{b}x")] {
                same_handle(&typed);
                same_email(&format!("{typed}@x.y"));
                same_email(&format!("x@{typed}.y"));
                same_email(&format!("x@ab{typed}"));
            }
        }
    }
}

fn same_handle(typed: &str) {
    let quick = handle::quick(typed);
    assert_eq!(quick, handle::canonical(typed, &mut ()).ok(), "{typed:?}");
}

fn same_email(typed: &str) {
    if let Some(quick) = email::quick(typed) {
        let slow = email::canonical(typed, &mut ()).ok();
        assert_eq!(Some(quick), slow, "{typed:?}");
    }
}

#[test]
fn input_beyond_the_maximum_length_is_rejected() {
    let long = "é".repeat(MAX_INPUT_BYTES / 2 + 1);
    for raw in [
        RawIdentifier::Email(&long),
        RawIdentifier::Handle(&long),
        RawIdentifier::Phone { number: &long, region: "" },
        RawIdentifier::Phone { number: "", region: &long },
        RawIdentifier::Social { provider: &long, subject: "" },
        RawIdentifier::Social { provider: "", subject: &long },
        RawIdentifier::Url(&long),
    ] {
        let rejection = Identifier::parse(raw).unwrap_err();
        assert_eq!(rejection.rule(), Rule::TooLong);
    }
}
