//! Tests of phone numbers.

use phonenumber::Metadata;
use phonenumber::metadata::{DATABASE, Descriptor};

use super::{broken, check_any, form};
use crate::rejection::Rule;
use crate::{Dialling, Identifier, RawIdentifier, dialling, is_international};

fn raw<'a>(number: &'a str, region: &'a str) -> RawIdentifier<'a> {
    RawIdentifier::Phone { number, region }
}

fn phone(number: &str, region: &str) -> String {
    form(raw(number, region))
}

#[test]
fn canonical_forms_are_as_expected() {
    let cases = [
        ("(415) 555-2300", "US", "+14155552300"),
        ("+1 415 555 2300", "", "+14155552300"),
        ("+1 415 555 2300", "DE", "+14155552300"),
        ("415.555.2300", "us", "+14155552300"),
        ("1-415-555-2300", "US", "+14155552300"),
        ("＋１ ４１５ ５５５ ２３００", "", "+14155552300"),
        ("+١٤١٥٥٥٥٢٣٠٠", "", "+14155552300"),
        ("\u{202a}+1 415 555 2300\u{202c}", "", "+14155552300"),
        ("011 44 20 7946 0958", "US", "+442079460958"),
        ("+44 (0)20 7946 0958", "", "+442079460958"),
        ("(+44) 20 7946 0958", "", "+442079460958"),
        ("020 7946 0958", "GB", "+442079460958"),
        ("44 20 7946 0958", "GB", "+442079460958"),
        ("02 3661 8300", "IT", "+390236618300"),
        ("+39 02 3661 8300", "", "+390236618300"),
        ("8 (800) 123-45-67", "RU", "+78001234567"),
        ("+78001234567", "", "+78001234567"),
        ("011 15-2345-6789", "AR", "+5491123456789"),
        ("0 21 2121-1234", "BR", "+552121211234"),
        ("030/23456789", "DE", "+493023456789"),
        ("011 49 1512 3456789", "US", "+4915123456789"),
        ("03-331 6005", "NZ", "+6433316005"),
        ("00 64 3 331 6005", "NZ", "+6433316005"),
        ("+800 1234 5678", "", "+80012345678"),
        ("+979 123 456 789", "", "+979123456789"),
    ];
    for (number, region, canonical) in cases {
        assert_eq!(phone(number, region), canonical, "{number} in {region}");
        check_any(raw(number, region));
    }
}

/// Numbers as contact cards, messengers and pages of right-to-left text have them.
const INTERNATIONAL: [&str; 14] = [
    "tel:+33-6-12-34-56-78",
    "TEL:+33612345678",
    "(+33) 6 12 34 56 78",
    "[+33] (0)6 12 34 56 78",
    "\u{202a}+33 6 12 34 56 78\u{202c}",
    "\u{2068}+33 6 12 34 56 78\u{2069}",
    "\u{200e}+33 6 12 34 56 78",
    "\u{200e}+33 6 12 34 56 78\u{200e}\u{202c}",
    "\u{202a}tel:+33612345678\u{202c}",
    " \u{2066}(+33) 6 12 34 56 78\u{2069} ",
    "\u{feff}+33 6\u{61c} 12 34 56 78",
    "＋３３ ６ １２ ３４ ５６ ７８",
    "tel:06-12-34-56-78;phone-context=+33",
    "tel://+33612345678",
];

/// One function decides for all entrances whether a number needs a region, and the rules agree.
#[test]
fn numbers_in_international_form_need_no_region() {
    for number in INTERNATIONAL {
        assert!(is_international(number), "{number:?}");
        for region in ["", "DE", "FR"] {
            assert_eq!(phone(number, region), "+33612345678", "{number:?}");
            check_any(raw(number, region));
        }
        assert_eq!(dialling(number, "DE"), Some(Dialling::International), "{number:?}");
    }
    for number in [
        "06 12 34 56 78",
        "\u{202a}06 12 34 56 78\u{202c}",
        "(0)6 12 34 56 78",
        "tel:0612345678",
        "tel:0612345678;phone-context=example.com",
        "0033612345678",
        "06+12",
        "joe+33@example.com",
        "",
    ] {
        assert!(!is_international(number), "{number:?}");
        assert!(Identifier::parse(raw(number, "")).is_err(), "{number:?}");
    }
    assert_eq!(phone("\u{202a}06 12 34 56 78\u{202c}", "FR"), "+33612345678");
}

/// Marks around a number hide neither a decimal point nor the place of an error.
#[test]
fn marks_around_a_number_hide_nothing() {
    let decimal = broken(raw("\u{2068}14155552300.0\u{2069}", "US"));
    assert_eq!(decimal, (Rule::PhoneDecimal, Some(12)));
    let letter = broken(raw("\u{202a}tel:+1 800 FLOWERS\u{202c}", ""));
    assert_eq!(letter, (Rule::PhoneLetter, Some(12)));
}

#[test]
fn rejections_have_a_rule_and_a_position() {
    let cases = [
        ("", "", Rule::PhoneRegionMissing, None),
        ("(415) 555-2300", "", Rule::PhoneRegionMissing, None),
        ("(415) 555-2300", "ZZ", Rule::PhoneRegion, None),
        ("(415) 555-2300", "USA", Rule::PhoneRegion, None),
        ("(415) 555-2300", "001", Rule::PhoneRegion, None),
        ("+", "", Rule::PhoneNumber, None),
        ("", "US", Rule::PhoneNumber, None),
        ("+1 800 FLOWERS", "", Rule::PhoneLetter, Some(7)),
        ("+1 415 555 2300 x12", "", Rule::PhoneExtension, Some(16)),
        ("+1 415 555 2300 ext. 12", "", Rule::PhoneExtension, Some(16)),
        ("+1 415 555 2300#12", "", Rule::PhoneExtension, Some(15)),
        ("+1 415 555 2300;ext=12", "", Rule::PhoneExtension, Some(15)),
        ("+1 415 555 2300,,12", "", Rule::PhoneExtension, Some(15)),
        ("*31#4155552300", "US", Rule::PhoneCharacter, Some(0)),
        ("+1 415 555_2300", "", Rule::PhoneCharacter, Some(10)),
        ("1+4155552300", "US", Rule::PhonePlus, Some(1)),
        ("++14155552300", "", Rule::PhonePlus, Some(1)),
        ("+1 415 555 230", "", Rule::PhoneNumber, None),
        ("+1 415 555 23000", "", Rule::PhoneNumber, None),
        ("+1 115 555 2300", "", Rule::PhoneNumber, None),
        ("+39 023661830000", "", Rule::PhoneNumber, None),
        ("+972 33142764978", "", Rule::PhoneNumber, None),
        ("+44 791234567", "", Rule::PhoneNumber, None),
        ("+999 123456789", "", Rule::PhoneNumber, None),
        ("911", "US", Rule::PhoneNumber, None),
    ];
    for (number, region, rule, position) in cases {
        assert_eq!(broken(raw(number, region)), (rule, position), "{number} in {region}");
    }
    assert_eq!(broken(raw(&"1".repeat(4000), "US")), (Rule::PhoneNumber, None));
}

/// libphonenumber's example numbers of every type in every region, in each way to dial them.
#[test]
fn examples_of_libphonenumber() {
    let mut seen = 0;
    for metadata in DATABASE.iter() {
        for national in examples(metadata) {
            check_example(metadata, national);
            seen += 1;
        }
    }
    assert!(seen > 800, "{seen}");
}

fn check_example(metadata: &Metadata, national: &str) {
    let e164 = format!("+{}{national}", metadata.country_code());
    assert_eq!(phone(&e164, ""), e164);
    check_any(raw(&e164, ""));
    if metadata.id() == "001" {
        return;
    }
    assert_national(national, metadata.id(), &e164);
    let abroad = if metadata.country_code() == 1 { "GB" } else { "US" };
    let prefix = if abroad == "US" { "011" } else { "00" };
    assert_eq!(phone(&format!("{prefix}{}", &e164[1..]), abroad), e164);
    // Colombia's mobile numbers are dialled without the prefix: 03 selects a carrier.
    let Some(prefix) = metadata.national_prefix() else {
        return;
    };
    if !(metadata.id() == "CO" && national.starts_with('3')) {
        assert_national(&format!("{prefix}{national}"), metadata.id(), &e164);
    }
}

/// A number in national form is read as expected, or refused if its first digits may be the calling
/// code.
fn assert_national(number: &str, region: &str, e164: &str) {
    match Identifier::parse(raw(number, region)) {
        Ok(phone) => assert_eq!(phone.canonical(), e164),
        Err(rejection) => assert_eq!(rejection.rule(), Rule::PhoneAmbiguous, "{number} {region}"),
    }
}

fn examples(metadata: &Metadata) -> Vec<&str> {
    let of = metadata.descriptors();
    let types = [
        of.fixed_line(),
        of.mobile(),
        of.toll_free(),
        of.premium_rate(),
        of.shared_cost(),
        of.personal_number(),
        of.voip(),
        of.pager(),
        of.uan(),
        of.voicemail(),
    ];
    types.into_iter().flatten().filter_map(Descriptor::example).collect()
}

/// Every region has a plan or is rejected; every pattern compiles.
#[test]
fn every_region_has_a_plan_or_is_rejected() {
    let mut regions = 0;
    for first in 'A'..='Z' {
        for second in 'A'..='Z' {
            let region = format!("{first}{second}");
            let rule = broken(raw("20", &region)).0;
            regions += usize::from(rule == Rule::PhoneNumber);
        }
    }
    let named = DATABASE.iter().filter(|m| m.id() != "001").count();
    assert_eq!(regions, named);
}

/// A number with an extra digit is a different number or invalid: patterns must match to the end.
#[test]
fn a_pattern_must_match_to_the_end() {
    let mut refused = 0;
    for metadata in DATABASE.iter() {
        for national in examples(metadata) {
            let longer = format!("+{}{national}0", metadata.country_code());
            match Identifier::parse(raw(&longer, "")) {
                Ok(other) => assert!(other.canonical().ends_with(&longer[longer.len() - 6..])),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 700, "{refused}");
}
