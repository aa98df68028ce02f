//! Etags: equal for users that look equal, different for all others.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{State, Tenant, Timestamp, User, Value, Verification, any_user, id, user};

/// Stores keep etags with users, so the hash must not change.
#[test]
fn an_etag_has_16_hex_digits_and_never_changes() {
    let user = user(&["email:joe@example.com", "handle:joe"]);
    assert_eq!(user.etag(), user.clone().etag());
    assert_eq!(user.etag(), "7172688bfa999aa8");
}

fn deleted(delete_time: i64, purge_time: i64) -> State {
    let [delete_time, purge_time] = [delete_time, purge_time].map(Timestamp::from_millis);
    State::Deleted { delete_time, purge_time }
}

#[test]
fn every_visible_field_changes_the_etag() {
    let base = user(&["email:joe@example.com", "handle:joe"]);
    let changes: [fn(&mut User); 20] = [
        |user| user.id = id(2),
        |user| user.tenant = Tenant::parse("other").unwrap(),
        |user| user.display_name = "Joe".to_owned(),
        |user| user.create_time = Timestamp::from_millis(7),
        |user| user.update_time = Timestamp::from_millis(7),
        |user| user.identities.swap(0, 1),
        |user| drop(user.identities.pop()),
        |user| user.identities[0].identifier = super::identifier("email:eve@example.com"),
        |user| user.identities[0].display = "Joe@example.com".to_owned(),
        |user| user.identities[0].link_time = Timestamp::from_millis(7),
        |user| user.identities[0].primary = false,
        |user| {
            user.identities[0].verification =
                Some(Verification { time: Timestamp::from_millis(0), by: String::new() })
        },
        |user| {
            user.identities[1].verification =
                Some(Verification { time: Timestamp::from_millis(0), by: String::new() })
        },
        |user| {
            user.identities[0].verification =
                Some(Verification { time: Timestamp::from_millis(0), by: "x".to_owned() })
        },
        |user| drop(user.attributes.insert("a".to_owned(), Value::Int(0))),
        |user| drop(user.attributes.insert("a".to_owned(), Value::Bool(false))),
        |user| user.state = State::Disabled,
        |user| user.state = State::Merged { into: id(2) },
        |user| user.state = deleted(1, 2),
        |user| user.state = deleted(1, 3),
    ];
    let mut etags = vec![base.etag()];
    for change in changes {
        let mut changed = base.clone();
        change(&mut changed);
        etags.push(changed.etag());
    }
    let count = etags.len();
    etags.sort_unstable();
    etags.dedup();
    assert_eq!(etags.len(), count, "two of these users have one etag");
}

#[test]
fn the_version_of_the_rules_does_not_change_the_etag() {
    let base = user(&["handle:joe"]);
    let mut other = base.clone();
    other.identities[0].rules_version += 1;
    assert_eq!(base.etag(), other.etag());
}

#[test]
fn similar_values_have_different_etags() {
    let values = [
        Value::String(String::new()),
        Value::String("0".to_owned()),
        Value::Int(0),
        Value::Double(0.0),
        Value::Double(-0.0),
        Value::Bool(false),
        Value::Time(Timestamp::from_millis(0)),
        Value::List(Vec::new()),
        Value::List(vec![String::new()]),
        Value::List(vec!["0".to_owned()]),
        Value::List(vec![String::new(), String::new()]),
    ];
    let etag = |value: &Value| {
        User { attributes: [("a".to_owned(), value.clone())].into(), ..user(&[]) }.etag()
    };
    let etags: std::collections::BTreeSet<_> = values.iter().map(etag).collect();
    assert_eq!(etags.len(), values.len());
}

/// The text contains the bytes that two more attributes would feed to the hash.
#[test]
fn a_text_does_not_collide_with_other_attributes() {
    let text = |length: usize| "x".repeat(length);
    let others = BTreeMap::from([
        ("a".to_owned(), Value::Int(i64::from_le_bytes([1, 0, 0, 0, 0, 0, 0, b'!']))),
        ("b".to_owned(), Value::String(text(100))),
        ("c".to_owned(), Value::String(text(124))),
    ]);
    let field = |name: &str, length: u8| {
        format!(
            "\u{1}\0\0\0\0\0\0\0{name}{}\0\0\0\0\0\0\0{}",
            char::from(length),
            text(length.into())
        )
    };
    let inside = format!("!{}{}", field("b", 100), field("c", 124));
    assert_eq!(
        inside.len(),
        259,
        "the length of the text, whose first byte is the tag of a integer"
    );
    let alone = BTreeMap::from([("a".to_owned(), Value::String(inside))]);
    assert_ne!(
        User { attributes: alone, ..user(&[]) }.etag(),
        User { attributes: others, ..user(&[]) }.etag()
    );
}

proptest! {
    #[test]
    fn different_users_have_different_etags(a in any_user(), b in any_user()) {
        prop_assert_eq!(a == b, a.etag() == b.etag());
    }
}
