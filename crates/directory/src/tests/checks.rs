//! The checks that need no store: tenants, attributes and new identities.

use std::collections::BTreeMap;

use super::{Invalid, NewUser, Tenant, Value, invalid, new_identity};
use crate::model::attribute;

#[test]
fn names_of_tenants_are_checked() {
    let longest = "a".repeat(63);
    for name in ["a", "0", "a-", "a-b", "default", "9-9", "a--b", &longest] {
        assert_eq!(Tenant::parse(name).unwrap().as_str(), name);
    }
    let too_long = "a".repeat(64);
    for name in ["-a", "A", "a_b", "a.b", "a,b", "a b", " ", "é", "a\0", "a\n", &too_long] {
        invalid(Tenant::parse(name), Invalid::Tenant, "tenant");
    }
    assert_eq!(Tenant::parse("").unwrap(), Tenant::DEFAULT);
    assert_eq!(Tenant::parse("default").unwrap(), Tenant::DEFAULT);
}

fn check(name: &str, value: Value) -> Result<(), super::Error> {
    attribute::check(&BTreeMap::from([(name.to_owned(), value)]), "user.attributes")
}

#[test]
fn names_of_attributes_are_checked() {
    let longest = "a".repeat(256);
    for name in ["a", "1a", "a.b", "Favorite Player", "price.in.$", "é", "お気に入り", &longest]
    {
        check(name, Value::Bool(true)).unwrap();
    }
    let too_long = "a".repeat(257);
    for name in ["", "a\0", "a\n", "e\u{301}", &"é".repeat(129), &too_long] {
        invalid(
            check(name, Value::Bool(true)),
            Invalid::Attribute,
            "user.attributes (name 0 in order)",
        );
    }
}

#[test]
fn values_of_attributes_are_bounded() {
    let text = |length| "x".repeat(length);
    let good = [
        Value::String(text(4_096)),
        Value::String(String::new()),
        Value::Double(f64::MAX),
        Value::List(vec![text(4_096); 100]),
        Value::List(Vec::new()),
    ];
    for value in good {
        check("a", value).unwrap();
    }
    let bad = [
        Value::String(text(4_097)),
        Value::String("é".repeat(2_049)),
        Value::Double(f64::NAN),
        Value::Double(f64::INFINITY),
        Value::Double(f64::NEG_INFINITY),
        Value::List(vec![String::new(); 101]),
        Value::List(vec![text(1), text(4_097)]),
    ];
    for value in bad {
        invalid(check("a.b", value), Invalid::Attribute, "user.attributes.a.b");
    }
}

fn check_new_user(names: &[&str], primaries: &[usize]) -> Result<(), super::Error> {
    let mut identities: Vec<_> = names.iter().map(|name| new_identity(name)).collect();
    for n in primaries {
        identities[*n].primary = true;
    }
    NewUser { identities, ..NewUser::default() }.check()
}

#[test]
fn a_new_user_with_a_duplicate_identifier_is_rejected() {
    check_new_user(&[], &[]).unwrap();
    check_new_user(&["handle:joe", "email:joe@example.com", "handle:jo"], &[]).unwrap();
    let twice = check_new_user(&["handle:joe", "email:joe@example.com", "handle:@JOE"], &[]);
    invalid(twice, Invalid::DuplicateIdentifier, "user.identities[2].identifier");
}

#[test]
fn a_new_user_with_two_primary_identities_of_a_kind_is_rejected() {
    check_new_user(&["handle:a", "handle:b", "email:a@example.com"], &[1, 2]).unwrap();
    let twice = check_new_user(&["handle:a", "email:a@example.com", "handle:b"], &[0, 1, 2]);
    invalid(twice, Invalid::Field, "user.identities[2].primary");
}
