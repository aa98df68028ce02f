//! The gauges of the versions of a store.

use metrics::gauge;

/// The gauge of the schema version.
pub const SCHEMA_VERSION: (&str, &str) = ("polynym_schema_version", "The store's schema version");
/// The gauge of the version of the rules.
pub const RULES_VERSION: (&str, &str) =
    ("polynym_rules_version", "The version of the rules of normalisation that the store has");

/// Sets both gauges.
pub fn set_versions(schema: f64, rules: u32) {
    gauge!(SCHEMA_VERSION.0).set(schema);
    gauge!(RULES_VERSION.0).set(f64::from(rules));
}
