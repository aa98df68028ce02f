//! The caches beside a store's file.

use std::sync::Arc;

use crate::store::attribute_names::AttributeNames;
use crate::store::owner_hints::OwnerHints;

/// Owner hints and attribute names, for as long as the store is open.
#[derive(Clone)]
pub struct Caches {
    /// The owner hints.
    pub hints: Arc<OwnerHints>,
    /// The names of attributes.
    pub names: Arc<AttributeNames>,
}

impl Caches {
    /// Empty caches, with `hint_bytes` bytes for owner hints.
    pub fn new(hint_bytes: usize) -> Self {
        Self { hints: OwnerHints::new(hint_bytes), names: Arc::default() }
    }
}
