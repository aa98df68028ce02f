//! The document has every method and every name that it refers to.

use super::*;

fn all() -> Value {
    document("").unwrap()
}

/// The references in a part of the document.
fn references(part: &Value, found: &mut Vec<String>) {
    match part {
        Value::Object(entries) => {
            if let Some(Value::String(reference)) = entries.get("$ref") {
                found.push(reference.clone());
            }
            entries.values().for_each(|part| references(part, found));
        }
        Value::Array(items) => items.iter().for_each(|part| references(part, found)),
        _ => {}
    }
}

#[test]
fn every_method_has_a_path_and_a_description() {
    let document = all();
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let services = pool.services().filter(|service| service.package_name() == PACKAGE);
    let methods: Vec<_> =
        services.flat_map(|service| service.methods().collect::<Vec<_>>()).collect();
    assert_eq!(document["paths"].as_object().unwrap().len(), methods.len());
    for method in methods {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let operation = &document["paths"][&path]["post"];
        assert!(operation["description"].as_str().unwrap().len() > 10, "{path}");
        let content = operation["requestBody"]["content"].as_object().unwrap();
        let has_two = ["ExportUsers", "Watch"].contains(&method.name());
        assert_eq!(content.len(), 1 + usize::from(has_two), "{path}");
    }
}

#[test]
fn every_field_and_value_has_a_description() {
    for (name, schema) in all()["components"]["schemas"].as_object().unwrap() {
        if name.starts_with("google.rpc.") {
            continue;
        }
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name}.{field}");
        }
        for value in schema["enum"].as_array().into_iter().flatten() {
            let item = format!("\n- `{}`: ", value.as_str().unwrap());
            assert!(schema["description"].as_str().unwrap().contains(&item), "{item}");
        }
    }
}

#[test]
fn every_reference_leads_to_a_component() {
    let document = all();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 500, "{}", found.len());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn values_have_the_forms_of_the_json_mapping() {
    let document = all();
    let schemas = &document["components"]["schemas"];
    let identifier = schemas["Identifier"]["oneOf"].as_array().unwrap();
    let titles: Vec<_> =
        identifier.iter().map(|branch| branch["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["email", "handle", "phone", "social", "url"]);
    assert!(identifier.iter().all(|branch| branch["additionalProperties"] == false));

    let request = &schemas["ResolveIdentityRequest"];
    assert_eq!(request["additionalProperties"], false);
    let field = |name: &str| &request["properties"][name];
    assert_eq!(field("maxStaleness")["pattern"], r"^-?[0-9]+(\.[0-9]{1,9})?s$");
    assert_eq!(field("readMask")["type"], "string");
    assert_eq!(field("asOf")["format"], "date-time");
    assert_eq!(field("consistency")["$ref"], "#/components/schemas/Consistency");

    let user = &schemas["User"];
    assert_eq!(user["additionalProperties"], Value::Null);
    assert_eq!(
        user["properties"]["attributes"]["additionalProperties"]["$ref"],
        "#/components/schemas/AttributeValue"
    );
    let event = &schemas["Event"];
    assert_eq!(event["properties"]["sequence"]["type"], json!(["string", "integer"]));
    assert_eq!(event["oneOf"].as_array().unwrap().len(), 19);
    let history = &schemas["ListHistoryRequest"];
    assert_eq!(history["unevaluatedProperties"], false);
}

#[test]
fn the_prefix_is_that_of_the_server() {
    assert_eq!(document("/polynym").unwrap()["servers"][0]["url"], "/polynym");
}
