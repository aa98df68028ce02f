//! Tests of handles.

use precis_profiles::precis_core::{DerivedPropertyValue, IdentifierClass, StringClass};
use regex::Regex;

use super::{broken, check_any, form};
use crate::RawIdentifier;
use crate::handle::is_letter;
use crate::rejection::Rule;

fn handle(typed: &str) -> String {
    form(RawIdentifier::Handle(typed))
}

fn fault(typed: &str) -> (Rule, Option<usize>) {
    broken(RawIdentifier::Handle(typed))
}

#[test]
fn canonical_forms_are_as_expected() {
    let cases = [
        ("@Ｊoé_99", "joé_99"),
        ("＠joe", "joe"),
        ("joe", "joe"),
        ("JOE", "joe"),
        ("a+b", "a+b"),
        ("a:b/c", "a:b/c"),
        ("9lives", "9lives"),
        ("Jose\u{301}", "jos\u{e9}"),
        ("ﾊﾞｯﾄ", "バット"),
        ("@שלום", "שלום"),
        ("مرحبا", "مرحبا"),
        ("あいうxyz", "あいうxyz"),
        ("ΣΑΣ", "σασ"),
        ("İx", "i\u{307}x"),
        ("ⴰⵎⴰⵣⵉⵖ", "ⴰⵎⴰⵣⵉⵖ"),
    ];
    for (typed, canonical) in cases {
        assert_eq!(handle(typed), canonical);
        check_any(RawIdentifier::Handle(typed));
    }
}

#[test]
fn rejections_have_a_rule_and_a_position() {
    let cases = [
        ("", Rule::HandleLength, None),
        ("@", Rule::HandleLength, None),
        ("＠", Rule::HandleLength, None),
        ("@@joe", Rule::HandleAt, None),
        ("joe@example.com", Rule::HandleAt, None),
        ("joe＠x", Rule::HandleAt, None),
        ("+joe", Rule::HandlePlus, None),
        ("@+joe", Rule::HandlePlus, None),
        ("＋joe", Rule::HandlePlus, None),
        ("+14155552300", Rule::HandlePlus, None),
        ("4155552300", Rule::HandleLetter, None),
        ("_-.", Rule::HandleLetter, None),
        ("٣٤٥", Rule::HandleDirection, None),
        ("𝟙𝟚", Rule::HandleCharacter, Some(0)),
        ("jo e", Rule::HandleCharacter, Some(2)),
        ("joe\n", Rule::HandleCharacter, Some(3)),
        ("Ｊo\u{200b}e", Rule::HandleCharacter, Some(2)),
        ("joe😀", Rule::HandleCharacter, Some(3)),
        ("x\u{200d}y", Rule::HandleCharacter, Some(1)),
        ("שa", Rule::HandleDirection, None),
        ("рaypal", Rule::HandleScripts, None),
        ("pаypаl", Rule::HandleScripts, None),
        ("αbc", Rule::HandleScripts, None),
        ("あк", Rule::HandleScripts, None),
        // Small Cherokee letters came after the Unicode version of PRECIS's registry.
        ("ᏣᎳᎩ", Rule::HandleUnstable, None),
    ];
    for (typed, rule, position) in cases {
        assert_eq!(fault(typed), (rule, position), "{typed}");
    }
}

#[test]
fn length_is_in_code_points_of_the_canonical_form() {
    for letter in ["a", "é", "語"] {
        let longest = letter.repeat(64);
        assert_eq!(handle(&longest), longest);
        assert_eq!(handle(&format!("@{longest}")), longest);
        assert_eq!(fault(&format!("{longest}{letter}")), (Rule::HandleLength, None));
    }
    // The decomposed form has more code points.
    let typed = "@".to_owned() + &"ᾳ\u{314}\u{301}".repeat(64);
    assert_eq!(handle(&typed).chars().count(), 64);
    assert_eq!(fault(&"a\u{301}".repeat(200)), (Rule::HandleLength, None));
}

/// RFC 8265, section 3.5. Email addresses are usernames there, but not handles here.
#[test]
fn examples_of_rfc_8265() {
    for (typed, canonical) in [
        ("fussball", "fussball"),
        ("fu\u{df}ball", "fu\u{df}ball"),
        ("\u{3c0}", "\u{3c0}"),
        ("\u{3a3}", "\u{3c3}"),
        ("\u{3c3}", "\u{3c3}"),
        ("\u{3c2}", "\u{3c2}"),
    ] {
        assert_eq!(handle(typed), canonical);
    }
    assert_eq!(fault("juliet@example.com").0, Rule::HandleAt);
    assert_eq!(fault("foo bar"), (Rule::HandleCharacter, Some(3)));
    assert_eq!(fault(""), (Rule::HandleLength, None));
    assert_eq!(fault("henry\u{2163}"), (Rule::HandleCharacter, Some(5)));
    assert_eq!(fault("\u{265a}"), (Rule::HandleCharacter, Some(0)));
    assert_eq!(fault("\u{221e}"), (Rule::HandleCharacter, Some(0)));
}

/// The letters are exactly General_Category L among all characters that PRECIS allows.
#[test]
fn letters_are_general_category_l() {
    let class = IdentifierClass::default();
    let letter = Regex::new(r"^\p{L}$").unwrap();
    let mut letters = 0;
    for c in '\0'..=char::MAX {
        if matches!(
            class.get_value_from_char(c),
            DerivedPropertyValue::Disallowed
                | DerivedPropertyValue::SpecClassDis
                | DerivedPropertyValue::Unassigned
        ) {
            continue;
        }
        let expected = letter.is_match(c.encode_utf8(&mut [0; 4]));
        assert_eq!(is_letter(c), expected, "U+{:04X}", u32::from(c));
        letters += u32::from(expected);
    }
    assert!(letters > 90_000, "{letters}");
}
