//! Tests of identity keys.

use proptest::prelude::*;

use crate::key::IdentityKey;
use crate::lookalike::Guard;
use crate::{Identifier, Kind};

fn key(tenant: &str, kind: Kind, value: &str) -> IdentityKey {
    IdentityKey::new(tenant, &Identifier::from_canonical(kind, value.to_owned()))
}

#[test]
fn a_key_has_its_parts() {
    let joe = key("default", Kind::Email, "joe@example.com");
    assert_eq!(joe.as_str(), "default,email,joe@example.com");
    assert_eq!(joe.parts(), ("default", "email", "joe@example.com"));
    let commas = key("a", Kind::Social, "x/,b,email,c");
    assert_eq!(commas.parts(), ("a", "social", "x/,b,email,c"));
    assert_eq!(IdentityKey::from_stored(commas.clone().into_string()), Some(commas));
    for foreign in ["", "default", "default,email"] {
        assert_eq!(IdentityKey::from_stored(foreign.to_owned()), None);
    }
}

#[test]
fn a_guard_with_an_ascii_skeleton_conflicts_with_the_handle() {
    let guard = |handle| Guard::of_handle(handle).map(|guard| IdentityKey::of_guard("t", &guard));
    assert_eq!(guard("ѕсоре"), Some(key("t", Kind::Handle, "scope")));
    let other = guard("ёж").unwrap();
    assert_eq!(other.parts().1, Guard::LOOKALIKE);
    assert!(Kind::ALL.iter().all(|kind| kind.as_str() != Guard::LOOKALIKE));
}

#[test]
fn debug_hides_the_value() {
    let joe = key("default", Kind::Email, "canary@example.com");
    assert_eq!(format!("{joe:?}"), "IdentityKey(default, email, …)");
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

proptest! {
    #[test]
    fn keys_are_distinct_and_ordered_as_their_triples(
        a in ("[a-c][a-c0-9-]{0,3}", kinds(), "[,a-c\u{1}é-]{0,4}"),
        b in ("[a-c][a-c0-9-]{0,3}", kinds(), "[,a-c\u{1}é-]{0,4}"),
    ) {
        let (first, second) = (key(&a.0, a.1, &a.2), key(&b.0, b.1, &b.2));
        prop_assert_eq!(first.cmp(&second), a.cmp(&b));
        prop_assert_eq!(first.parts(), (&*a.0, a.1.as_str(), &*a.2));
    }
}
