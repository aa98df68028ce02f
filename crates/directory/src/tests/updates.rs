//! Update masks (AIP-134, AIP-161).

use std::collections::BTreeMap;

use super::{Error, Invalid, User, UserChange, Value, apply, invalid, mutation, user};
use crate::update_mask::Update;

fn attributes(pairs: &[(&str, i64)]) -> BTreeMap<String, Value> {
    pairs.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect()
}

fn update(mask: Option<&[&str]>, name: &str, pairs: &[(&str, i64)]) -> Result<Update, Error> {
    let mask: Option<Vec<String>> =
        mask.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
    Update::from_mask(mask.as_deref(), name.to_owned(), attributes(pairs))
}

/// The name and the attributes after an update of a user with the name `old` and the attributes
/// a=1, b=2.
fn updated(
    mask: Option<&[&str]>,
    name: &str,
    pairs: &[(&str, i64)],
) -> (String, BTreeMap<String, Value>) {
    let before = User {
        display_name: "old".to_owned(),
        attributes: attributes(&[("a", 1), ("b", 2)]),
        ..user(&[])
    };
    let after =
        apply(&mutation(UserChange::Update(update(mask, name, pairs).unwrap())), Some(&before))
            .unwrap();
    (after.display_name, after.attributes)
}

#[test]
fn an_update_sets_the_fields_of_its_mask() {
    type Case<'a> = (&'a [&'a str], &'a str, &'a [(&'a str, i64)]);
    let new = &[("a", 9), ("c", 3)];
    let cases: &[Case<'_>] = &[
        (&["display_name"], "new", &[("a", 1), ("b", 2)]),
        (&["attributes"], "old", &[("a", 9), ("c", 3)]),
        (&["display_name", "attributes"], "new", &[("a", 9), ("c", 3)]),
        (&["*"], "new", &[("a", 9), ("c", 3)]),
        (&["attributes.a"], "old", &[("a", 9), ("b", 2)]),
        (&["attributes.c"], "old", &[("a", 1), ("b", 2), ("c", 3)]),
        (&["attributes.b"], "old", &[("a", 1)]),
        (&["attributes.none"], "old", &[("a", 1), ("b", 2)]),
        (&["attributes.`a`", "attributes.b"], "old", &[("a", 9)]),
        (&["attributes.b", "attributes"], "old", &[("a", 9), ("c", 3)]),
        (&["attributes.a", "*", "attributes.a"], "new", &[("a", 9), ("c", 3)]),
    ];
    for (mask, name, wanted) in cases {
        assert_eq!(
            updated(Some(mask), "new", new),
            ((*name).to_owned(), attributes(wanted)),
            "{mask:?}"
        );
    }
}

#[test]
fn an_update_with_a_mask_can_clear_fields() {
    assert_eq!(updated(Some(&["*"]), "", &[]), (String::new(), BTreeMap::new()));
    assert_eq!(
        updated(Some(&["display_name"]), "", &[("z", 1)]),
        (String::new(), attributes(&[("a", 1), ("b", 2)]))
    );
}

#[test]
fn an_update_without_a_mask_sets_the_fields_that_are_not_empty() {
    for mask in [None, Some(&[][..])] {
        assert_eq!(
            updated(mask, "new", &[]),
            ("new".to_owned(), attributes(&[("a", 1), ("b", 2)]))
        );
        assert_eq!(updated(mask, "", &[("z", 1)]), ("old".to_owned(), attributes(&[("z", 1)])));
        assert_eq!(updated(mask, "", &[]), ("old".to_owned(), attributes(&[("a", 1), ("b", 2)])));
    }
}

#[test]
fn masks_can_name_attributes_with_dots() {
    for path in ["attributes.x.y", "attributes.`x.y`"] {
        let (_, after) = updated(Some(&[path]), "", &[("x.y", 7), ("x", 8)]);
        assert_eq!(after, attributes(&[("a", 1), ("b", 2), ("x.y", 7)]), "{path}");
    }
}

#[test]
fn other_paths_are_rejected() {
    let paths = [
        "",
        "identities",
        "identities.0",
        "user_id",
        "etag",
        "state",
        "Display_Name",
        "display_name.x",
        "attribute.a",
        "attributes.",
        "attributes.``",
        "attributes.`a",
        "attributes.a`",
        "**",
        "attributes.*",
        " display_name",
    ];
    for path in paths {
        invalid(
            update(Some(&["display_name", path]), "new", &[]),
            Invalid::UpdateMask,
            "update_mask",
        );
    }
}
