//! The definitions of a tenant for the cells of its tables.

use std::collections::BTreeMap;

use crate::field::ValueType;

/// The definitions of a tenant for the cells of its tables.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The types of attributes, by their names, unless the mapping gives one.
    pub types: BTreeMap<String, ValueType>,
    /// The regions of its telephone numbers in national form, the likeliest first.
    pub regions: Vec<String>,
}
