//! The leads of a filter.

use super::{filter, list, text, user};
use crate::model::attribute::Value;
use crate::search::{Field, Lead, Order, Scalar, parse_order_by};

fn leads(text: &str) -> Vec<String> {
    filter(text).leads().iter().map(ToString::to_string).collect()
}

#[test]
fn only_what_all_matches_satisfy_leads() {
    assert_eq!(leads(""), [""; 0]);
    assert_eq!(leads("attributes.a = 1 OR attributes.b = 1"), [""; 0]);
    assert_eq!(leads("NOT attributes.a = 1"), [""; 0]);
    assert_eq!(leads("attributes.a != 1 update_time > 2026-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(leads("state = ACTIVE state:* state != DELETED"), [""; 0]);
    assert_eq!(
        leads("attributes.a > 1 AND (attributes.b = x AND state = DELETED) AND attributes.b = x"),
        ["attributes.b = \"x\"", "state = \"DELETED\"", "attributes.a in (1, \"\")"]
    );
}

#[test]
fn what_a_lead_decides_is_not_left() {
    let text = "attributes.a = 1 (attributes.b = x OR attributes.a = 1) attributes.a = 1";
    let whole = filter(text);
    let rest = whole.rest(&whole.leads().remove(0));
    assert_eq!(rest, filter("attributes.b = x OR attributes.a = 1"));
    let only = filter("attributes.a = 1");
    assert_eq!(only.rest(&only.leads().remove(0)), filter(""));
    assert_eq!(only.rest(&Lead::All), only);
    assert_eq!(filter("attributes.a != 1").rest(&only.leads().remove(0)).attributes(), ["a"]);
}

#[test]
fn ranges_of_single_values_are_joined() {
    let both = leads("create_time >= 2026-01-01T00:00:00Z create_time < 2026-02-01T00:00:00Z");
    assert_eq!(both, ["create_time in [2026-01-01T00:00:00Z, 2026-02-01T00:00:00Z)"]);
    // A list may satisfy each by another item.
    assert_eq!(leads("attributes.a > b attributes.a < b").len(), 2);
}

#[test]
fn a_user_stands_at_its_least_element_within_the_bounds() {
    let joe = user(
        &[("tags", list(&["c", "a", "e"])), ("n", Value::Int(1))],
        &["email:b@x.org", "email:a@x.org"],
    );
    let value = |text: &str| {
        let lead = filter(text).leads().remove(0);
        assert_eq!(lead.order(), Order::Value, "{text}");
        lead.position(&joe).map(|position| position.value.unwrap().to_string())
    };
    assert_eq!(value("attributes.tags:*").as_deref(), Some("\"a\""));
    assert_eq!(value("attributes.tags > \"a\"").as_deref(), Some("\"c\""));
    assert_eq!(value("attributes.tags = \"*\"").as_deref(), Some("\"a\""));
    assert_eq!(value("attributes.tags > \"f\""), None);
    assert_eq!(value("identities.email:*").as_deref(), Some("\"a@x.org\""));
    let lead = filter("attributes.tags = e").leads().remove(0);
    assert_eq!(lead.position(&joe).unwrap().value, None);
    assert_eq!(Lead::All.position(&joe).unwrap().id, joe.id);
}

#[test]
fn an_order_leads_by_its_field() {
    let field = parse_order_by(" attributes.\"a b\" asc").unwrap().unwrap();
    assert_eq!(field, Field::Attribute("a b".to_owned()));
    let ordered = |text: &str| filter(text).ordered_leads(&field);
    assert_eq!(ordered("state = DELETED")[0].to_string(), "attributes.\"a b\" in (-, -)");
    assert_eq!(
        ordered("attributes.\"a b\" = 1"),
        [Lead::Equals { field: field.clone(), value: Scalar::Int(1) }]
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
fn every_match_is_found_by_every_lead() {
    let joe = user(&[("a", Value::Int(1)), ("b", text("x"))], &["handle:joe"]);
    let filter =
        filter("attributes.a >= 1 attributes.b = x identities.handle = Joe display_name:*");
    assert!(filter.matches(&joe));
    let leads = filter.leads();
    assert_eq!(leads.len(), 4);
    assert!(leads.iter().all(|lead| lead.position(&joe).is_some()));
}
