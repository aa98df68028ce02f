//! The most expensive inputs take at most half a millisecond of processor time.

use std::time::{Duration, Instant};

use crate::{Identifier, MAX_INPUT_BYTES, RawIdentifier, warm_up};

const BUDGET: Duration = Duration::from_micros(500);
/// The slowdown of a build without optimisation.
const SLOWDOWN: u32 = if cfg!(debug_assertions) { 12 } else { 1 };
/// The number of runs, of which the shortest counts: others may have been preempted.
const RUNS: usize = 1_000;

/// A pattern repeated to the maximum length, then an end.
fn filled(pattern: &str, end: &str) -> String {
    pattern.repeat((MAX_INPUT_BYTES - end.len()) / pattern.len()) + end
}

fn time(raw: RawIdentifier<'_>) -> Duration {
    let start = Instant::now();
    let _ = Identifier::parse(raw);
    start.elapsed()
}

fn assert_cheap(raw: RawIdentifier<'_>) {
    let is_in_time = (0..RUNS).any(|_| time(raw) < BUDGET * SLOWDOWN);
    let start: String = raw.to_string().chars().take(20).collect();
    assert!(is_in_time, "{start}…: {:?}", time(raw));
}

#[test]
fn handles_are_parsed_in_time() {
    let dots = |count: usize| "・".repeat(count) + "ア";
    let texts = [
        dots(64),
        dots(256),
        filled("・", "ア"),
        "・".repeat(43) + &"ạ̈̃".repeat(20) + "ア",
        "l·".repeat(32),
        "\u{660}".repeat(64),
        "ل\u{200c}".repeat(32) + "ل",
        "a".to_owned() + &"\u{301}".repeat(256),
        filled("é\u{301}\u{323}", ""),
        filled("ﷺ", ""),
        filled("İ", ""),
        filled("א", ""),
    ];
    texts.iter().for_each(|text| assert_cheap(RawIdentifier::Handle(text)));
}

#[test]
fn domains_are_parsed_in_time() {
    // As many different letters as possible, for Punycode to sort.
    let letters = |count: u32| {
        (0..count).filter_map(|n| char::from_u32(0x4e00 + n * 15 % 20_000)).collect::<String>()
    };
    let domains = [
        // Longer labels are rejected beforehand.
        letters(990),
        letters(252),
        format!("{}.{}", letters(63), letters(63)),
        filled("xn--a.", "com"),
        filled("a.", "com"),
        filled("\u{ad}", "com"),
        "％４１".repeat(400),
        "xn--".to_owned() + &"9".repeat(4_000),
        "xn--".to_owned() + &"a".repeat(3_000) + "-" + &"z".repeat(1_000),
        filled("א1", ""),
    ];
    for domain in &domains {
        assert_cheap(RawIdentifier::Email(&format!(
            "a@{}",
            &domain[..domain.floor_char_boundary(4_090)]
        )));
        assert_cheap(RawIdentifier::Url(&format!(
            "https://{}",
            &domain[..domain.floor_char_boundary(4_080)]
        )));
    }
}

#[test]
fn other_input_is_parsed_in_time() {
    warm_up();
    let locals = [
        filled("ạ̈̃", "@b"),
        filled("\u{301}", "@b"),
        filled("(", "@b"),
        filled("a.", "@b"),
        filled("@", ""),
    ];
    locals.iter().for_each(|typed| assert_cheap(RawIdentifier::Email(typed)));
    let paths = [
        filled("/..", ""),
        filled("%41", ""),
        filled("%e4", ""),
        filled("/%2e%2e", ""),
        filled("é", ""),
    ];
    paths.iter().for_each(|path| {
        assert_cheap(RawIdentifier::Url(
            &("https://a/".to_owned() + &path.chars().take(1_000).collect::<String>()),
        ))
    });
    let numbers = [
        "1".repeat(32),
        filled("-", "1"),
        filled("(", ""),
        "+".to_owned() + &"9".repeat(31),
        filled("٣", ""),
    ];
    for number in &numbers {
        for region in ["", "US", "DE", "AR"] {
            assert_cheap(RawIdentifier::Phone { number, region });
        }
    }
    let subject = filled("é", "");
    assert_cheap(RawIdentifier::Social { provider: "github", subject: &subject });
}
