//! The access paths of a filter.

use super::{filter, list, text, user};
use crate::model::attribute::Value;
use crate::search::{AccessPath, Field, Order, Scalar, parse_order_by};

fn paths(text: &str) -> Vec<String> {
    filter(text).access_paths().iter().map(ToString::to_string).collect()
}

#[test]
fn access_paths_are_conditions_that_all_matches_satisfy() {
    assert_eq!(paths(""), [""; 0]);
    assert_eq!(paths("attributes.a = 1 OR attributes.b = 1"), [""; 0]);
    assert_eq!(paths("NOT attributes.a = 1"), [""; 0]);
    assert_eq!(paths("attributes.a != 1 update_time > 2026-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(paths("state = ACTIVE state:* state != DELETED"), [""; 0]);
    assert_eq!(
        paths("attributes.a > 1 AND (attributes.b = x AND state = DELETED) AND attributes.b = x"),
        ["attributes.b = \"x\"", "state = \"DELETED\"", "attributes.a in (1, \"\")"]
    );
}

#[test]
fn words_and_ends_lead() {
    assert_eq!(
        paths("display_name:\"María Mü*\" identities.email = \"*@x.org\""),
        [
            "word of display_name = \"maria\"",
            "reversed domain of identities.email = \"gro.x\"",
            "word of display_name in [\"mu\", \"mv\")",
        ]
    );
    assert_eq!(paths("display_name = \"*Max Müller\"").len(), 2);
    let ends = paths("identities.email = *.org identities.phone = *12");
    assert_eq!(
        ends,
        [
            "reversed domain of identities.email in [\"gro.\", \"gro/\")",
            "reversed identities.phone in [\"21\", \"22\")",
        ]
    );
    assert_eq!(paths("identities.handle = *joe"), [""; 0]);
    assert_eq!(paths("NOT display_name:maria"), [""; 0]);
}

#[test]
fn spellings_lead_together() {
    assert_eq!(
        paths("display_name:\"o brien\""),
        [
            "word of display_name in [\"o\", \"o\"] or [\"obrien\", \"obrien\"]",
            "word of display_name in [\"brien\", \"brien\"] or [\"obrien\", \"obrien\"]",
        ]
    );
    assert_eq!(paths("display_name:太郎"), ["word of display_name in [\"太郎\", \"太郏\")"]);
    let city = ["attributes.city in [\"o\u{308}\", \"o\u{308}\"] or [\"ö\", \"ö\"]"];
    assert_eq!(paths("attributes.city = ö"), city);
    assert_eq!(paths("identities.email = ΑΣ*"), ["identities.email = \"α*\""]);
}

#[test]
fn the_rest_omits_the_access_path() {
    let text = "attributes.a = 1 (attributes.b = x OR attributes.a = 1) attributes.a = 1";
    let whole = filter(text);
    let rest = whole.rest(&whole.access_paths().remove(0));
    assert_eq!(rest, filter("attributes.b = x OR attributes.a = 1"));
    let only = filter("attributes.a = 1");
    assert_eq!(only.rest(&only.access_paths().remove(0)), filter(""));
    assert_eq!(only.rest(&AccessPath::All), only);
    assert_eq!(
        filter("attributes.a != 1").rest(&only.access_paths().remove(0)).attributes(),
        ["a"]
    );
}

#[test]
fn ranges_of_single_valued_fields_are_intersected() {
    let both = paths("create_time >= 2026-01-01T00:00:00Z create_time < 2026-02-01T00:00:00Z");
    assert_eq!(both, ["create_time in [2026-01-01T00:00:00Z, 2026-02-01T00:00:00Z)"]);
    // Different items of a list may satisfy each.
    assert_eq!(paths("attributes.a > b attributes.a < b").len(), 2);
}

#[test]
fn the_position_is_the_least_element_within_the_bounds() {
    let joe = user(
        &[("tags", list(&["c", "a", "e"])), ("n", Value::Int(1))],
        &["email:b@x.org", "email:a@x.org"],
    );
    let value = |text: &str| {
        let path = filter(text).access_paths().remove(0);
        assert_eq!(path.order(), Order::Value, "{text}");
        path.position(&joe).map(|position| position.value.unwrap().to_string())
    };
    assert_eq!(value("attributes.tags:*").as_deref(), Some("\"a\""));
    assert_eq!(value("attributes.tags > \"a\"").as_deref(), Some("\"c\""));
    assert_eq!(value("attributes.tags = \"*\"").as_deref(), Some("\"a\""));
    assert_eq!(value("attributes.tags > \"f\""), None);
    assert_eq!(value("identities.email:*").as_deref(), Some("\"a@x.org\""));
    let path = filter("attributes.tags = e").access_paths().remove(0);
    assert_eq!(path.position(&joe).unwrap().value, None);
    assert_eq!(AccessPath::All.position(&joe).unwrap().id, joe.id);
}

#[test]
fn the_access_path_of_an_order_is_on_its_field() {
    let field = parse_order_by(" attributes.\"a b\" asc").unwrap().unwrap();
    assert_eq!(field, Field::Attribute("a b".to_owned()));
    let ordered = |text: &str| filter(text).ordered_paths(&field);
    assert_eq!(ordered("state = DELETED")[0].to_string(), "attributes.\"a b\" in (-, -)");
    assert_eq!(
        ordered("attributes.\"a b\" = 1"),
        [AccessPath::Equals { field: field.clone(), value: Scalar::Int(1) }]
    );
    for wrong in [
        "name",
        "display_name desc",
        "display_name,create_time",
        "state",
        "update_time",
        "identities.email",
        "attributes.",
        "display_name asc desc",
    ] {
        assert!(parse_order_by(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse_order_by("").unwrap(), None);
    assert_eq!(parse_order_by("display_name").unwrap(), Some(Field::DisplayName));
}

#[test]
fn every_access_path_finds_every_match() {
    let joe = user(&[("a", Value::Int(1)), ("b", text("x"))], &["handle:joe"]);
    let filter =
        filter("attributes.a >= 1 attributes.b = x identities.handle = Joe display_name:*");
    assert!(filter.matches(&joe));
    let paths = filter.access_paths();
    assert_eq!(paths.len(), 4);
    assert!(paths.iter().all(|path| path.position(&joe).is_some()));
}
