//! Tests of reading and writing files, and of their schema.

use polynym_presentation::policy::{POLICIES, Policy, Value as PolicyValue};
use polynym_proto::v1::{AttributeDefinition, AttributeType, ReservedHandles, Tenant};
use prost_types::Duration;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::node::{Data, Fault, parse};
use super::reader::{Declared, defaults, tenants, value};
use super::source::Source;
use super::{difference, document, schema, write};

fn sources(texts: &[&str]) -> Vec<Source> {
    let source = |(n, text): (usize, &&str)| Source {
        name: format!("{n}.yaml"),
        text: (*text).to_owned(),
        is_read: true,
    };
    texts.iter().enumerate().map(source).collect()
}

/// The faults of files: the file, the line, the column, and the message.
fn faults(texts: &[&str]) -> Vec<(usize, usize, usize, String)> {
    let mut faults = Vec::new();
    tenants(&sources(texts), &mut faults);
    faults.sort();
    let tuple =
        |Fault { position, message }| (position.file, position.line, position.column, message);
    faults.into_iter().map(tuple).collect()
}

#[test]
fn a_tenant_has_defaults_and_what_the_file_names() {
    let text = "tenants:\n  - name: acme\n    policies:\n      verified_wins: true\n      \
                inbox_limit: 7\n      undo_window: 1h 30m\n    holds: {email: 7d, handle: 0d}\n    \
                reserved_handles: [root]\n    attribute_definitions:\n      - {name: level, type: \
                int}\n      - {name: bio, indexed: false}\n";
    let mut faults = Vec::new();
    let read = tenants(&sources(&[text]), &mut faults);
    assert_eq!(faults, []);
    let [Declared { name, policies, positions, position }] = &read[..] else { panic!("{read:?}") };
    assert_eq!((name.as_str(), position.line, position.column), ("acme", 2, 11));
    assert!(policies.verified_wins && !policies.hide_unverified);
    assert_eq!((policies.inbox_limit, policies.undo_window.unwrap().seconds), (7, 5_400));
    assert_eq!(policies.restore_window, defaults().restore_window);
    let holds = policies.holds.unwrap();
    let seconds =
        [holds.email, holds.handle, holds.phone].map(|time| time.map(|time| time.seconds));
    assert_eq!(seconds, [Some(604_800), Some(0), None]);
    assert_eq!(policies.reserved_handles.clone().unwrap().handles, ["root"]);
    let names: Vec<_> =
        policies.attribute_definitions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["bio", "level"]);
    assert_eq!(policies.attribute_definitions[0].indexed, Some(false));
    assert_eq!(
        (positions["holds.email"].line, positions.contains_key("restore_window")),
        (7, false)
    );
}

#[test]
fn all_faults_are_found_at_once() {
    let first = "tenants:\n  - name: acme\n    policies:\n      undo_wind: 1d\n      \
                 verified_wins: on\n      undo_window: 366d\n      inbox_limit: 0\n      \
                 inbox_limit: 5\n    colour: red\n  - policies: {}\n";
    let second = "tenants:\n  - name: acme\n  - name: Beta\n    holds: {fax: 1d}\n    \
                  reserved_handles: [root, \"a b\", 7]\n    attribute_definitions:\n      \
                  - {name: a, type: text}\n      - {type: int}\n      - {name: a}\n";
    let found = faults(&[first, second, "a: [}", "", "tenants: 7\n"]);
    let expected = [
        (0, 4, "undo_wind: unknown key; did you mean undo_window?"),
        (0, 5, "write true or false"),
        (0, 6, "at most 365 days"),
        (0, 7, "write a number from 1 to 10000"),
        (0, 8, "inbox_limit is written twice"),
        (0, 9, "colour: unknown key"),
        (0, 10, "a tenant needs a `name`"),
        (1, 2, "tenant acme is described at 0.yaml:2:11, too"),
        (1, 3, "a tenant's name is"),
        (1, 4, "fax: unknown key"),
        (1, 5, ""),
        (1, 5, "write a handle"),
        (1, 7, "write one of string, int"),
        (1, 8, "a definition needs the `name`"),
        (1, 9, "attribute a is defined twice"),
        (2, 1, ""),
        (3, 0, "no tenant is described"),
        (4, 1, "write a list"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((file, line, _, message), (in_file, at, part)) in found.iter().zip(expected) {
        assert_eq!((*file, *line), (in_file, at), "{message}, not {part}");
        assert!(message.contains(part), "{message}, not {part}");
    }
}

#[test]
fn durations_have_bounds() {
    let policy = Policy::find("undo_window").unwrap();
    let time = |text: &str| value(policy, &Data::Text(text.to_owned()));
    assert_eq!(time("0d"), Ok(PolicyValue::Time(Some(Duration::default()))));
    assert!(time("365d").is_ok() && time("1500ms").is_ok());
    for wrong in ["365d 1ms", "1us", "-1d", "soon", "99999999999999999999d"] {
        assert!(time(wrong).is_err(), "{wrong}");
    }
    assert!(value(policy, &Data::Number(0)).is_err());
}

#[test]
fn files_are_read_as_they_are_written() {
    let mut policies = defaults();
    policies.undo_window = Some(Duration { seconds: 1, nanos: 500_000_000 });
    policies.verified_wins = true;
    policies.reserved_handles = Some(ReservedHandles { handles: Vec::new() });
    let definition = |name: &str, kind: AttributeType| AttributeDefinition {
        name: name.to_owned(),
        indexed: Some(false),
        r#type: kind.into(),
        ..Default::default()
    };
    policies.attribute_definitions =
        vec![definition("a: \"b\"", AttributeType::Int), definition("yes", AttributeType::Time)];
    let named = |name: &str| Tenant {
        tenant: name.to_owned(),
        policies: Some(policies.clone()),
        ..Default::default()
    };
    let file = document::of_tenants(&[named("acme"), named("007")]);
    let zero = |time: Option<Duration>| time.unwrap_or_default();
    for text in [write::yaml(&file), write::json(&file).to_string()] {
        let mut faults = Vec::new();
        let read = tenants(&sources(&[&text]), &mut faults);
        assert_eq!(faults, [], "{text}");
        let names: Vec<_> = read.iter().map(|tenant| tenant.name.as_str()).collect();
        assert_eq!(names, ["acme", "007"]);
        let policies_read = &read[0].policies;
        assert_eq!(difference::between(&policies, policies_read), []);
        assert_eq!(zero(policies_read.undo_window), zero(policies.undo_window));
        assert_eq!(policies_read.attribute_definitions, policies.attribute_definitions);
        assert!(read[0].positions.contains_key("holds.url"), "{text}");
    }
}

/// The example of the documentation, as a value.
fn example() -> Value {
    let page = include_str!("../../../../docs/configuration-as-code.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let documents = parse(0, rest.split("```").next().unwrap()).unwrap();
    write::json(&documents[0])
}

/// The faults of a value by a schema that has only the keywords of [`schema::document`].
fn violations(schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "properties" => {
                for (key, schema) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        violations(schema, value, &format!("{path}.{key}"), faults);
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    violations(rule, item, path, faults);
                }
            }
            "additionalProperties" => {
                assert_eq!(rule, false);
                let known = schema["properties"].as_object().unwrap();
                let mut keys = value.as_object().into_iter().flat_map(Map::keys);
                if keys.any(|key| !known.contains_key(key)) {
                    faults.push(format!("{path}: {keyword}"));
                }
            }
            keyword if !is_met(keyword, rule, value) => faults.push(format!("{path}: {keyword}")),
            _ => {}
        }
    }
}

/// Whether a value obeys the rule of a keyword. Values of other types obey it.
fn is_met(keyword: &str, rule: &Value, value: &Value) -> bool {
    let has_type = || match rule.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        other => panic!("type {other}"),
    };
    let number = || rule.as_i64().unwrap();
    let length = || value.as_str().map(|text| text.len() as i64);
    let matches = |text: &str| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text);
    match keyword {
        "$schema" | "title" | "description" | "default" => true,
        "type" => has_type(),
        "required" => {
            let mut keys = rule.as_array().unwrap().iter();
            keys.all(|key| value.get(key.as_str().unwrap()).is_some())
        }
        "enum" => rule.as_array().unwrap().contains(value),
        "pattern" => value.as_str().is_none_or(matches),
        "minimum" => value.as_i64().is_none_or(|value| value >= number()),
        "maximum" => value.as_i64().is_none_or(|value| value <= number()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as i64 <= number()),
        "minLength" => length().is_none_or(|length| length >= number()),
        "maxLength" => length().is_none_or(|length| length <= number()),
        other => panic!("keyword {other}"),
    }
}

fn schema_faults(value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    violations(&schema::document(), value, "", &mut faults);
    faults
}

#[test]
fn the_schema_accepts_the_example_and_refuses_wrong_files() {
    assert_eq!(schema_faults(&example()), Vec::<String>::new());
    let changed = |pointer: &str, value: Value| {
        let mut file = example();
        *file.pointer_mut(pointer).unwrap() = value;
        schema_faults(&file)
    };
    for (pointer, value, fault) in [
        ("/tenants", json!({}), ".tenants: type"),
        ("/tenants/0/name", json!("Acme"), ".tenants.name: pattern"),
        ("/tenants/0", json!({}), ".tenants: required"),
        ("/tenants/0/policies", json!({ "undo": "1d" }), ".policies: additionalProperties"),
        ("/tenants/0/policies/verified_wins", json!("on"), "verified_wins: type"),
        ("/tenants/0/policies/undo_window", json!("soon"), "undo_window: pattern"),
        ("/tenants/0/policies/inbox_limit", json!(0), "inbox_limit: minimum"),
        ("/tenants/0/policies/inbox_limit", json!(10_001), "inbox_limit: maximum"),
        ("/tenants/0/holds", json!({ "fax": "1d" }), ".holds: additionalProperties"),
        ("/tenants/0/reserved_handles", json!([7]), ".reserved_handles: type"),
        ("/tenants/0/attribute_definitions/0/type", json!("text"), ".type: enum"),
        ("/tenants/0/attribute_definitions/0/name", json!(""), ".name: minLength"),
    ] {
        let faults = changed(pointer, value);
        assert!(faults.len() == 1 && faults[0].ends_with(fault), "{pointer}: {faults:?}");
    }
}

/// The defaults of the schema are the policies of a tenant whose files name none.
#[test]
fn the_schema_has_the_defaults() {
    let schema = schema::document();
    let tenant = &schema["properties"]["tenants"]["items"]["properties"];
    for policy in POLICIES {
        let pointer = match policy.hold() {
            Some(kind) => format!("/holds/properties/{kind}/default"),
            None => format!("/policies/properties/{}/default", policy.path),
        };
        let default = match tenant.pointer(&pointer).unwrap() {
            Value::Bool(on) => Data::Switch(*on),
            Value::Number(number) => Data::Number(number.as_i64().unwrap()),
            other => Data::Text(other.as_str().unwrap().to_owned()),
        };
        let mut policies = defaults();
        policy.set(value(policy, &default).unwrap(), &mut policies);
        assert_eq!(difference::between(&policies, &defaults()), [], "{}", policy.path);
    }
}
