//! Tests of the second version of the rules, where the third differs.

use crate::rejection::Rule;
use crate::rules::Rules;
use crate::{Identifier, RawIdentifier};

#[test]
fn its_results_never_change() {
    let cases = [
        ("email:joe@i❤.ws", Ok("joe@xn--i-7iq.ws")),
        ("email:joe@example.com¹", Ok("joe@example.com1")),
        ("email:joe@127.0.0.1", Err(Rule::EmailLiteral)),
        ("phone:tel:+14155552300", Err(Rule::PhoneLetter)),
        ("phone/DE:494131789.0", Ok("+494941317890")),
        ("url:https://matrix.to/#/@joe:x.y", Ok("https://matrix.to")),
        ("url:https://scholar.google.com/citations?user=A", Ok(SCHOLAR)),
        ("url:https://x.com/@Joe", Ok("https://x.com/@joe")),
        ("url:https://facebook.com/photo.php?fbid=1", Ok("https://www.facebook.com/photophp")),
        ("url:https://x.y/a b", Ok("https://x.y/a%20b")),
        ("url:https://t.co/a?b=c", Ok("https://t.co/a")),
    ];
    for (text, canonical) in cases {
        let raw = RawIdentifier::from_text(text).unwrap();
        let parsed = Rules::SECOND.parse(raw);
        let dry_run = Rules::SECOND.normalize(raw).map(|normalization| normalization.identifier);
        assert_eq!(parsed, dry_run);
        let form = parsed.map(|identifier| identifier.canonical().to_owned());
        let form = form.map_err(|rejection| rejection.rule());
        assert_eq!(form, canonical.map(str::to_owned), "{text}");
    }
}

const SCHOLAR: &str = "https://scholar.google.com/citations";

/// A final sigma was another letter.
#[test]
fn its_guards_never_change() {
    let guards = ["νίκος", "νίκοσ"].map(|handle| {
        let handle = Identifier::parse(RawIdentifier::Handle(handle)).unwrap();
        assert_ne!(handle.guard(), None);
        [Rules::FIRST, Rules::SECOND].map(|rules| rules.guard(&handle).unwrap())
    });
    let [[first, second], [_, other]] = &guards;
    assert_eq!(first, second);
    assert_ne!(second, other);
}

#[test]
fn identifiers_have_their_earlier_forms() {
    let cases: [(&str, &[&str]); 10] = [
        ("url:https://twitter.com/Joe/media", &["https://twitter.com/Joe/media"]),
        ("url:https://x.com/joe/status/1", &["https://x.com/joe/status/1"]),
        ("url:x.com/joe", &[]),
        ("url:https://x.com/@Joe", &["https://x.com/@joe", "https://x.com/@Joe"]),
        ("url:https://x.y/a", &[]),
        ("url:https://matrix.to/#/@joe:x.y", &["https://matrix.to"]),
        ("email:joe@i❤.ws", &["joe@xn--i-7iq.ws"]),
        ("phone:+1 115 555 2300", &["+11155552300"]),
        ("phone:tel:+1-115-555-2300", &["+11155552300"]),
        ("phone/US:115 555 2300", &[]),
    ];
    for (text, forms) in cases {
        let raw = RawIdentifier::from_text(text).unwrap();
        let found = Rules::PRESENT.earlier_forms(raw);
        let found: Vec<_> = found.iter().map(Identifier::canonical).collect();
        assert_eq!(found, forms, "{text}");
    }
}
