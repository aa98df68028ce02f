//! Tests of the fields and forms of ids.

use proptest::prelude::*;
use serde_test::{Configure, Token, assert_de_tokens_error, assert_tokens};
use uuid::Uuid;

use crate::id::LocalityId;
use crate::split::split_points;
use crate::text::{ParseIdError, TEXT_LEN};

const EXAMPLE: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
const VERSION_4: &str = "0c2f5ab1-7a2e-4f4e-9c57-8b5d3f0a1e22";

fn id(text: &str) -> LocalityId {
    text.parse().unwrap()
}

#[test]
fn the_published_example_has_its_fields() {
    let id = id(EXAMPLE);
    assert_eq!(id.version(), 0xb);
    assert_eq!(id.counter(), Some(3_488_672_514));
    assert_eq!(id.sequential_counter(), Some(0x20be_0ffc));
    assert_eq!(id.process_id(), Some(12_618));
    assert_eq!(id.node(), Some(0xd53_7a50));
    // 2012-10-15T18:58:18.450Z
    assert_eq!(id.timestamp_millis(), Some(1_350_327_498_450));
}

#[test]
fn other_versions_have_no_fields() {
    let id = id(VERSION_4);
    assert_eq!(id.version(), 4);
    assert_eq!(id.counter(), None);
    assert_eq!(id.sequential_counter(), None);
    assert_eq!(id.process_id(), None);
    assert_eq!(id.node(), None);
    assert_eq!(id.timestamp_millis(), None);
    assert_eq!(id.to_string(), VERSION_4);
}

#[test]
fn both_cases_are_parsed_and_lower_case_is_written() {
    let upper = id(&EXAMPLE.to_uppercase());
    assert_eq!(upper.to_string(), EXAMPLE);
    assert_eq!(format!("{upper:?}"), EXAMPLE);
    assert_eq!(format!("{upper:>40}"), format!("    {EXAMPLE}"));
    assert_eq!(upper.encode_text(&mut [0; TEXT_LEN]), EXAMPLE);
}

#[test]
fn malformed_texts_are_errors() {
    let fault = |text: &str| text.parse::<LocalityId>().unwrap_err();
    assert_eq!(fault(""), ParseIdError::Length(0));
    assert_eq!(fault(&EXAMPLE[1..]), ParseIdError::Length(35));
    assert_eq!(fault("20be0ffc314abd537a50013a65ca76d2"), ParseIdError::Length(32));
    assert_eq!(fault(&format!("{{{EXAMPLE}}}")), ParseIdError::Length(38));
    assert_eq!(fault(&EXAMPLE.replacen('-', "0", 1)), ParseIdError::Hyphen(8));
    assert_eq!(fault(&EXAMPLE.replacen('0', "g", 1)), ParseIdError::Digit(1));
    assert_eq!(fault(&EXAMPLE.replacen('0', "-", 1)), ParseIdError::Digit(1));
    assert_eq!(fault(&EXAMPLE.replacen("20", "ß", 1)), ParseIdError::Digit(0));
}

#[test]
fn error_messages_count_from_one() {
    assert_eq!(ParseIdError::Digit(0).to_string(), "character 1 of the id is not a hex digit");
    assert_eq!(ParseIdError::Hyphen(8).to_string(), "an id has a hyphen as character 9");
    assert_eq!(ParseIdError::Length(3).to_string(), "an id has 36 characters, not 3");
}

#[test]
fn serde_uses_text_if_human_readable_and_bytes_otherwise() {
    const BYTES: &[u8; 16] = b"\x20\xbe\x0f\xfc\x31\x4a\xbd\x53\x7a\x50\x01\x3a\x65\xca\x76\xd2";
    assert_tokens(&id(EXAMPLE).readable(), &[Token::Str(EXAMPLE)]);
    assert_tokens(&id(EXAMPLE).compact(), &[Token::Bytes(BYTES)]);
    assert_eq!(serde_json::to_string(&id(EXAMPLE)).unwrap(), format!("\"{EXAMPLE}\""));
    assert_de_tokens_error::<serde_test::Compact<LocalityId>>(
        &[Token::Bytes(b"short")],
        "invalid length 5, expected a UUID as text or as 16 bytes",
    );
    assert_de_tokens_error::<serde_test::Readable<LocalityId>>(
        &[Token::Str("short")],
        "an id has 36 characters, not 5",
    );
}

#[test]
fn split_points_bound_equal_ranges() {
    assert_eq!(split_points(0), []);
    assert_eq!(split_points(1), []);
    assert_eq!(split_points(2), [id("80000000-0000-0000-0000-000000000000")]);
    let thirds =
        [id("55555555-5555-5555-5555-555555555555"), id("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")];
    assert_eq!(split_points(3), thirds);
}

proptest! {
    #[test]
    fn texts_round_trip(bytes: [u8; 16], upper: bool) {
        let id = LocalityId::from(bytes);
        let lower = id.to_string();
        let text = if upper { lower.to_uppercase() } else { lower };
        prop_assert_eq!(text.len(), TEXT_LEN);
        prop_assert_eq!(text.parse(), Ok(id));
        prop_assert_eq!(<[u8; 16]>::from(id), bytes);
    }

    #[test]
    fn any_text_is_parsed_as_by_uuid_or_rejected(text in "[0-9a-fA-FgG-]{34,38}|\\PC{0,40}") {
        let parsed = text.parse::<LocalityId>();
        if text.len() == TEXT_LEN {
            prop_assert_eq!(parsed.ok().map(Uuid::from), Uuid::parse_str(&text).ok());
        } else {
            prop_assert_eq!(parsed, Err(ParseIdError::Length(text.len())));
        }
    }

    #[test]
    fn an_invalid_character_is_located(bytes: [u8; 16], at in 0..TEXT_LEN, wrong in "[g-z :_]") {
        let mut text = LocalityId::from(bytes).to_string();
        text.replace_range(at..=at, &wrong);
        let expected = match at {
            8 | 13 | 18 | 23 => ParseIdError::Hyphen(at),
            _ => ParseIdError::Digit(at),
        };
        prop_assert_eq!(text.parse::<LocalityId>(), Err(expected));
    }

    #[test]
    fn order_is_that_of_bytes_texts_and_uuids(a: [u8; 16], b: [u8; 16]) {
        let (x, y) = (LocalityId::from(a), LocalityId::from(b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.cmp(&y), x.to_string().cmp(&y.to_string()));
        prop_assert_eq!(x.cmp(&y), Uuid::from(x).cmp(&Uuid::from(y)));
        prop_assert_eq!(LocalityId::from(Uuid::from(x)), x);
    }

    #[test]
    fn ranges_differ_by_one_id_at_most(n in 2..2_000usize) {
        let mut bounds = vec![0];
        bounds.extend(split_points(n).iter().map(|id| u128::from_be_bytes(*id.as_bytes())));
        prop_assert_eq!(bounds.len(), n);
        let mut sizes: Vec<u128> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        sizes.push(u128::MAX - bounds[n - 1] + 1);
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        prop_assert!(most - least <= 1);
    }
}
