//! Tests of the first version of the rules, where it differs.

use crate::rejection::Rule;
use crate::rules::Rules;
use crate::{Identifier, RawIdentifier};

fn first(text: &str) -> Result<String, Rule> {
    let raw = RawIdentifier::from_text(text).unwrap();
    let parsed = Rules::FIRST.parse(raw);
    let dry_run = Rules::FIRST.normalize(raw).map(|normalization| normalization.identifier);
    assert_eq!(parsed, dry_run);
    parsed.map(|identifier| identifier.canonical().to_owned()).map_err(|rejection| rejection.rule())
}

#[test]
fn its_results_never_change() {
    let cases = [
        ("email:Joe@127.0.0.1", Ok("joe@127.0.0.1")),
        ("email:Joe@example.com", Ok("joe@example.com")),
        ("handle:@Joe", Ok("joe")),
        ("phone/US:(415) 555-2300", Ok("+14155552300")),
        ("social:GitHub/5\u{200b}", Ok("github/5\u{200b}")),
        ("social:https%3A%2F%2Fx.y/5", Err(Rule::SocialProvider)),
        ("url:http://GitHub.com/Joe/", Ok("https://github.com/Joe")),
        ("url:https://www.github.com/joe", Ok("https://www.github.com/joe")),
        ("url:https://facebook.com/profile.php?id=1", Ok("https://facebook.com/profile.php")),
    ];
    for (text, canonical) in cases {
        assert_eq!(first(text), canonical.map(str::to_owned), "{text}");
    }
}

#[test]
fn all_versions_are_known() {
    let forms = [
        (1, "https://x.com/@Joe/media"),
        (2, "https://x.com/@Joe/media"),
        (3, "https://x.com/@Joe/media"),
        (4, "https://x.com/joe"),
    ];
    for (version, canonical) in forms {
        let rules = Rules::known(version).unwrap();
        let typed = RawIdentifier::Url("https://x.com/@Joe/media");
        let parsed: Identifier = rules.parse(typed).unwrap();
        assert_eq!((rules.version(), parsed.canonical()), (version, canonical));
    }
    assert!(Rules::known(5).is_none());
}
