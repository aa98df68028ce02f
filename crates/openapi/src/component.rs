//! The components of the document, and references to them.

use serde_json::{Value, json};

/// The package of the API.
pub const PACKAGE: &str = "polynym.v1";

/// A reference to a component.
pub fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}
