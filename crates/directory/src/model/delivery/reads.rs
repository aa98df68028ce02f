//! What a mutation reads of deliveries.

use super::record::EventDelivery;

/// The deliveries that a store has read for a mutation.
#[derive(Clone, Debug, Default)]
pub struct DeliveryReads {
    /// The delivery of the requested id, or its absence.
    pub delivery: Option<Option<EventDelivery>>,
    /// The number of those of the mutation's tenant.
    pub count: Option<usize>,
}
