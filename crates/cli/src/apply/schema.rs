//! The JSON schema of the files, for editors.

use serde_json::{Map, Value, json};

use super::definition::{
    EVIDENCE, FIND, INDEXED, MAX_DEFINITIONS, MAX_NAME_BYTES, TYPE, type_names,
};
use super::reader::{
    DEFINITIONS, HANDLES, HOLDS, MAX_HANDLES, MAX_REGIONS, MAX_TENANTS, NAME, REGIONS, SINGLE,
    TENANTS,
};
use polynym_presentation::duration::{self, exact_argument};
use polynym_presentation::policy::{Field, POLICIES, Policy};

/// A duration as people write it.
const TIME_PATTERN: &str = "^[0-9]+ ?[a-z]+( ?[0-9]+ ?[a-z]+)*$";

/// The schema, in the draft 2020-12.
pub fn document() -> Value {
    let tenants = json!({ "type": "array", "items": tenant(), "maxItems": MAX_TENANTS });
    let mut file = object(&[TENANTS], json!({ TENANTS: tenants }));
    file["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    file["title"] = json!("Tenants of Polynym, for `polynym apply`");
    file
}

fn tenant() -> Value {
    let handles = json!({
        "type": "array",
        "items": { "type": "string" },
        "maxItems": MAX_HANDLES,
        "description": "Handles that nobody can register or link, instead of the default list.",
    });
    let regions = json!({
        "type": "array",
        "items": { "type": "string", "pattern": "^[A-Z]{2}$" },
        "maxItems": MAX_REGIONS,
        "description": "The countries as of which national phone numbers are read.",
    });
    let properties = json!({
        NAME: { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$" },
        SINGLE: single(false),
        HOLDS: single(true),
        HANDLES: handles,
        REGIONS: regions,
        DEFINITIONS: { "type": "array", "items": definition(), "maxItems": MAX_DEFINITIONS },
    });
    object(&[NAME], properties)
}

fn definition() -> Value {
    let names = type_names().collect::<Vec<_>>();
    let evidence = "Whether users of one name with the same value are probable duplicates.";
    let properties = json!({
        NAME: { "type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES },
        TYPE: { "enum": names, "description": "The type of new values; any, if absent." },
        INDEXED: switch(true, "Whether searches by the attribute use an index."),
        EVIDENCE: switch(false, evidence),
        FIND: switch(false, "Whether users are found by a value of the attribute."),
    });
    object(&[NAME], properties)
}

fn switch(default: bool, meaning: &str) -> Value {
    json!({ "type": "boolean", "default": default, "description": meaning })
}

/// An object with these properties and no others.
fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The policies of one value: the holds, or all others.
fn single(of_holds: bool) -> Value {
    let own = POLICIES.iter().filter(|policy| policy.hold().is_some() == of_holds);
    let property =
        |policy: &Policy| (policy.hold().unwrap_or(policy.path).to_owned(), property_of(policy));
    object(&[], Value::Object(own.map(property).collect::<Map<_, _>>()))
}

fn property_of(policy: &Policy) -> Value {
    let Policy { meaning, default, max, .. } = policy;
    let default = default.text(exact_argument);
    match policy.field {
        Field::Switch(_) => switch(default == "on", meaning),
        Field::Time(_) => {
            let longest = max.map(|seconds| prost_types::Duration { seconds, nanos: 0 });
            let limit = format!("{meaning} At most {}.", duration::text(longest.as_ref()));
            json!({
                "type": "string",
                "pattern": TIME_PATTERN,
                "default": default,
                "description": limit,
            })
        }
        Field::Count(_) => json!({
            "type": "integer",
            "minimum": 1,
            "maximum": max,
            "default": default.parse::<i64>().ok(),
            "description": meaning,
        }),
    }
}
