//! Tests of the dry run.

use super::traced;
use crate::rejection::Rule;
use crate::trace::Change;
use crate::{Identifier, RawIdentifier};

fn changes(raw: RawIdentifier<'_>) -> Vec<(&'static str, String, String)> {
    let parts = |change: Change| (change.rule, change.before, change.after);
    traced(raw).changes.into_iter().map(parts).collect()
}

fn step(rule: &'static str, before: &str, after: &str) -> (&'static str, String, String) {
    (rule, before.to_owned(), after.to_owned())
}

#[test]
fn a_dry_run_shows_the_change_of_each_rule() {
    assert_eq!(
        changes(RawIdentifier::Email("Joe.Smith@Exämple.COM")),
        [
            step("lower-case", "Joe.Smith", "joe.smith"),
            step("uts46", "Exämple.COM", "xn--exmple-cua.com"),
        ]
    );
    assert_eq!(
        changes(RawIdentifier::Handle("＠Ｊoe\u{301}_99")),
        [
            step("width-mapping", "＠Ｊoe\u{301}_99", "@Joe\u{301}_99"),
            step("lower-case", "@Joe\u{301}_99", "@joe\u{301}_99"),
            step("nfc", "@joe\u{301}_99", "@joé_99"),
            step("leading-at", "@joé_99", "joé_99"),
        ]
    );
    let national = RawIdentifier::Phone { number: "(415) 555-2300", region: "US" };
    assert_eq!(
        changes(national),
        [
            step("digits", "(415) 555-2300", "4155552300"),
            step("e164", "4155552300", "+14155552300"),
        ]
    );
    let account = RawIdentifier::Social { provider: "GitHub", subject: "583231" };
    assert_eq!(changes(account), [step("lower-case", "GitHub", "github")]);
    assert_eq!(
        changes(RawIdentifier::Url("http://X.y./%7ejoe/?utm_id=5&a=%31#b")),
        [
            step(
                "whatwg",
                "http://X.y./%7ejoe/?utm_id=5&a=%31#b",
                "http://x.y./%7ejoe/?utm_id=5&a=%31#b"
            ),
            step("https", "http", "https"),
            step("host-dot", "x.y.", "x.y"),
            step("fragment", "b", ""),
            step("escapes", "/%7ejoe/", "/~joe/"),
            step("trailing-slashes", "/~joe/", "/~joe"),
            step("query", "utm_id=5&a=%31", "a=1"),
        ]
    );
}

#[test]
fn a_dry_run_shows_profiles_and_uris() {
    assert_eq!(
        changes(RawIdentifier::Url("https://x.com/@Joe/?s=20")),
        [
            step("trailing-slashes", "/@Joe/", "/@Joe"),
            step("query", "s=20", ""),
            step("profile", "https://x.com/@Joe", "https://x.com/joe"),
        ]
    );
    let uri = RawIdentifier::Phone { number: "tel:+1-415-555-2300", region: "" };
    assert_eq!(
        changes(uri),
        [
            step("tel-uri", "tel:+1-415-555-2300", "+1-415-555-2300"),
            step("digits", "+1-415-555-2300", "+14155552300"),
        ]
    );
}

#[test]
fn a_dry_run_shows_the_guard() {
    let run = traced(RawIdentifier::Handle("ѕсоре"));
    assert_eq!(run.identifier.canonical(), "ѕсоре");
    assert_eq!(run.guard.unwrap().skeleton(), "scope");
    assert!(traced(RawIdentifier::Handle("scope")).guard.is_none());
    assert!(traced(RawIdentifier::Email("ѕсоре@x.y")).guard.is_none());
}

#[test]
fn a_dry_run_rejects_like_a_parse() {
    let rejection = Identifier::normalize(RawIdentifier::Handle("@@")).unwrap_err();
    assert_eq!(rejection.rule(), Rule::HandleAt);
}
