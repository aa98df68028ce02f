//! A fuzz target for each kind. `cargo test` runs each briefly with random bytes; `cargo bolero
//! test` runs them guided by coverage.

use std::time::Duration;

use super::check_any;
use crate::{RawIdentifier, warm_up};

const FUZZ_TIME: Duration = Duration::from_millis(500);

/// Fragments with special rules that random bytes rarely produce.
const FRAGMENTS: [&str; 64] = [
    "@", "＠", "+", "＋", ".", "。", "-", "--", "xn--", "%", "%2e", "%2F", "%zz", "//", "/", "\\",
    "?", "#", ":", "[", "]", "\"", "(", "https://", "http:", "example", "com", "x", "X", "1", "0",
    "415", "555", "2300", "ß", "Σ", "ς", "İ", "ı", "Å", "\u{301}", "\u{307}", "\u{345}", "\u{37e}",
    "\u{200c}", "\u{200d}", "\u{200b}", "\u{202e}", "\u{ad}", "Ａ", "ﾊ", "ﾞ", "я", "ѕ", "א", "ا",
    "٣", "क", "\u{94d}", "漢", "한", "\u{1100}", "ᏣᎳ", "😀",
];

/// Maps bytes below 128 to ASCII, others to fragments.
fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte.checked_sub(128) {
            None => text.push(char::from(byte)),
            Some(n) => text.push_str(FRAGMENTS[usize::from(n) % FRAGMENTS.len()]),
        }
    }
    text
}

/// Calls `check` with random bytes as fragments and as UTF-8.
fn fuzz(check: impl Fn(&str) + std::panic::RefUnwindSafe) {
    warm_up();
    bolero::check!().with_test_time(FUZZ_TIME).for_each(|bytes: &[u8]| {
        check(&text(bytes));
        check(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn fuzz_email() {
    fuzz(|typed| {
        check_any(RawIdentifier::Email(typed));
        check_any(RawIdentifier::Email(&format!("a@{typed}")));
    });
}

#[test]
fn fuzz_handle() {
    fuzz(|typed| {
        if let Some(handle) = check_any(RawIdentifier::Handle(typed)) {
            handle.guard();
        }
    });
}

#[test]
fn fuzz_phone() {
    fuzz(|typed| {
        let (region, number) = typed.split_at(typed.floor_char_boundary(2));
        check_any(RawIdentifier::Phone { number, region });
        let number = &format!("+{typed}");
        check_any(RawIdentifier::Phone { number, region: "" });
        check_any(RawIdentifier::Phone { number: typed, region: "US" });
    });
}

#[test]
fn fuzz_social() {
    fuzz(|typed| {
        let (provider, subject) = typed.split_once('/').unwrap_or((typed, typed));
        check_any(RawIdentifier::Social { provider, subject });
        check_any(RawIdentifier::Social { provider: "p", subject });
    });
}

#[test]
fn fuzz_url() {
    fuzz(|typed| {
        check_any(RawIdentifier::Url(typed));
        check_any(RawIdentifier::Url(&format!("https://x.y/{typed}")));
        check_any(RawIdentifier::Url(&format!("http://{typed}")));
    });
}
