//! Fuzz targets: filters, orders and tokens. They run like those of identifiers.

use std::time::Duration;

use super::user;
use crate::search::page_token::KIND;
use crate::search::{Filter, PageToken, parse_order_by};
use crate::timestamp::Timestamp;
use crate::tokens::key::TokenKey;
use polynym_identifier::Rules;

const TIME: Duration = Duration::from_millis(500);

/// Pieces of filters that random bytes rarely form.
const PIECES: [&str; 66] = [
    "attributes.",
    "attributes.a",
    "attributes.\"a b\"",
    "state",
    "create_time",
    "update_time",
    "display_name",
    "identities.email",
    "identities.handle",
    "identities.phone",
    "identities.social",
    "identities.url",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    ":",
    ":*",
    "*",
    "\\*",
    "AND",
    "OR",
    "NOT",
    "-",
    "(",
    ")",
    " ",
    " ",
    " ",
    "\n",
    "\"",
    "'",
    "\\",
    "ACTIVE",
    "DELETED",
    "true",
    "false",
    "1",
    "-1",
    "1.5",
    "1e999",
    "9223372036854775808",
    "-9223372036854775808",
    "nan",
    "inf",
    "2026-01-31T12:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:60+99:99",
    "joe@example.com",
    "+14155552300",
    "github/1",
    "https://x.y/z",
    "a",
    "x",
    "é",
    "😀",
    "\u{10ffff}",
    "\u{0}",
    "\u{202e}",
    ",",
    "\"*example.com\"",
    "\"jo*\"",
    "desc",
    "asc",
];

fn text(bytes: &[u8]) -> String {
    let piece = |byte: &u8| match byte.checked_sub(128) {
        None => char::from(*byte).to_string(),
        Some(piece) => PIECES[usize::from(piece) % PIECES.len()].to_owned(),
    };
    bytes.iter().map(piece).collect()
}

#[test]
fn fuzz_filter() {
    let joe = user(&[("a", super::list(&["a", "x"]))], &["email:joe@example.com"]);
    let check_filter = |text: &str| {
        let Ok(filter) = Filter::parse(text, &[Rules::PRESENT]) else { return };
        for path in filter.access_paths() {
            // Every access path finds every match.
            assert!(!filter.matches(&joe) || path.position(&joe).is_some(), "{text}: {path}");
        }
    };
    bolero::check!().with_test_time(TIME).for_each(|bytes: &[u8]| {
        check_filter(&text(bytes));
        check_filter(&String::from_utf8_lossy(bytes));
        check_filter(&format!("attributes.a = {}", text(bytes)));
    });
}

#[test]
fn fuzz_order_by() {
    bolero::check!().with_test_time(TIME).for_each(|bytes: &[u8]| {
        let _ = parse_order_by(&text(bytes));
    });
}

#[test]
fn fuzz_page_token() {
    let (key, now) = (TokenKey::new([7; 32]), Timestamp::from_millis(0));
    bolero::check!().with_test_time(TIME).for_each(|bytes: &[u8]| {
        let _ = PageToken::decode(&key, &text(bytes), 7, now);
        // A message is decoded only if it was sealed.
        for kind in [0, KIND] {
            let _ = PageToken::decode(&key, &key.seal(kind, bytes), 7, now);
        }
    });
}
