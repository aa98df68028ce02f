//! The versions that a program supports.

use polynym_identifier::RULES_VERSION;
use polynym_store_common::unsupported::advice;

/// The present version of the schema, which `tables` describes.
pub const VERSION: u64 = 12;
/// The oldest version of the schema that this program supports. `store upgrade` takes such a store
/// to the newest one.
pub const OLDEST: u64 = VERSION;

/// The latest versions that a program supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported {
    /// Of the schema.
    pub schema: u64,
    /// Of the rules of normalisation.
    pub rules: u32,
}

impl Supported {
    /// The versions that this program supports.
    pub const PRESENT: Self = Self { schema: VERSION, rules: RULES_VERSION };

    /// The advice for a store of versions that the program does not support.
    pub const fn advice(self, schema: u64, rules: u32) -> &'static str {
        advice(schema > self.schema || rules > self.rules)
    }
}
