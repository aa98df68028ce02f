//! What a mutation reads of bulk changes.

use super::change::BulkChange;

/// The bulk changes that a store has read for a mutation.
#[derive(Clone, Debug, Default)]
pub struct BulkReads {
    /// The bulk change of the requested id, or its absence.
    pub change: Option<Option<BulkChange>>,
    /// The bulk change that is undone, or its absence.
    pub undone: Option<Option<BulkChange>>,
    /// The number of running ones of the mutation's tenant.
    pub running: Option<usize>,
}
