//! Tests of look-alikes.

use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

use super::form;
use crate::lookalike::{Guard, mixes_scripts};
use crate::{Identifier, Kind, RawIdentifier};

fn guard(handle: &str) -> Option<(&'static str, String)> {
    let canonical = form(RawIdentifier::Handle(handle));
    let guard = Guard::of_handle(&canonical)?;
    Some((guard.kind_word(), guard.skeleton().to_owned()))
}

fn handle_guard(ascii: &str) -> Option<(&'static str, String)> {
    Some((Kind::Handle.as_str(), ascii.to_owned()))
}

#[test]
fn a_lookalike_of_ascii_reserves_the_ascii_handle() {
    for (handle, ascii) in [
        ("ѕсоре", "scope"),
        ("раураӏ", "paypal"),
        ("ѕсоре_99", "scope_99"),
        ("ıce", "ice"),
        ("g〇〇gle", "google"),
        ("ɡoogle", "google"),
    ] {
        assert_eq!(guard(handle), handle_guard(ascii), "{handle}");
    }
}

#[test]
fn other_lookalikes_have_a_kind_of_their_own() {
    let cyrillic = guard("рёш").unwrap();
    assert_eq!(cyrillic.0, Guard::LOOKALIKE);
    assert!(cyrillic.1.starts_with("pë"), "{}", cyrillic.1);
}

#[test]
fn ascii_has_no_guard() {
    for handle in ["joel", "joe1", "rn"] {
        assert_eq!(guard(handle), None, "{handle}");
    }
    let email = Identifier::parse(RawIdentifier::Email("ѕсоре@x.y")).unwrap();
    assert_eq!(email.guard(), None);
}

/// Look-alike handles of different scripts have one guard, even if one is the skeleton of both.
#[test]
fn a_handle_that_is_its_own_skeleton_guards_itself() {
    for handle in ["joé_99", "müller", "ḿ", "日本"] {
        assert_eq!(guard(handle), Some((Guard::LOOKALIKE, handle.to_owned())), "{handle}");
    }
    assert_eq!(guard("ёхо"), guard("ëxo"));
}

/// UTS 39's whole confusables table: every allowed character that looks like ASCII reserves that
/// ASCII, alone and within a name, and does not become it.
#[test]
fn every_confusable_of_ascii_is_guarded() {
    let mut seen = 0;
    for c in '\u{80}'..=char::MAX {
        let skeleton: String = skeleton(c.encode_utf8(&mut [0; 4])).collect();
        if !skeleton.is_ascii() {
            continue;
        }
        let typed = c.to_string();
        let Ok(handle) = Identifier::parse(RawIdentifier::Handle(&typed)) else {
            continue;
        };
        // A capital or wide letter becomes another character, with its own skeleton.
        if handle.canonical() != typed {
            continue;
        }
        seen += 1;
        let expected = skeleton.to_ascii_lowercase();
        let guard = handle.guard().unwrap();
        assert_eq!(guard.skeleton(), expected, "U+{:04X}", u32::from(c));
        assert_eq!(guard.kind_word(), "handle");
        let twice = format!("{c}{c}");
        let guard = Guard::of_handle(&twice).unwrap();
        assert_eq!(guard.skeleton(), expected.repeat(2));
    }
    assert!(seen > 150, "{seen}");
}

/// A skeleton has no ASCII capitals, and NFC does not change it.
#[test]
fn a_skeleton_is_in_nfc_and_lower_case() {
    for c in ('\u{80}'..=char::MAX).filter(|c| c.is_alphabetic()) {
        if let Some(guard) = Guard::of_handle(&c.to_lowercase().to_string()) {
            let skeleton = guard.skeleton();
            assert_eq!(skeleton, skeleton.nfc().collect::<String>());
            assert!(!skeleton.contains(|c: char| c.is_ascii_uppercase()));
        }
    }
}

#[test]
fn scripts_mix_up_to_the_highly_restrictive_level() {
    for name in [
        "scope",
        "ѕсоре",
        "ѕсоре_99",
        "joé",
        "東京tokyo",
        "トウキョウtokyo",
        "ひらカタ漢",
        "한국kr",
        "韓국",
        "ㄅ漢a",
        "שלום9",
        "ελλάς",
        "ⴰⵎⴰⵣⵉⵖ",
        "αʹ",
        "ー",
    ] {
        assert!(!mixes_scripts(name), "{name}");
    }
    for name in ["scоpe", "αb", "жα", "aש", "あк", "한ひ", "ㄅひ", "aक", "漢я", "कa漢"]
    {
        assert!(mixes_scripts(name), "{name}");
    }
}
