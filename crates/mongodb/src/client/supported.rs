//! The versions that a program supports.

use polynym_identifier::RULES_VERSION;
use polynym_store_common::unsupported::advice;

/// The current version of the schema.
pub const VERSION: i64 = 16;
/// The oldest version of the schema that this program supports. `store upgrade` takes such a store
/// to the newest one, while programs of both versions work on it.
pub const OLDEST: i64 = VERSION;

/// The latest versions that a program supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported {
    /// Of the schema.
    pub schema: i64,
    /// Of the rules of normalisation.
    pub rules: u32,
}

impl Supported {
    /// The versions that this program supports.
    pub const PRESENT: Self = Self { schema: VERSION, rules: RULES_VERSION };

    /// The advice for a store of versions that the program does not support.
    pub const fn advice(self, schema: i64, rules: u32) -> &'static str {
        advice(schema > self.schema || rules > self.rules)
    }
}
