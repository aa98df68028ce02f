//! The clock of a store.

use crate::timestamp::Timestamp;

/// The clock of a store.
pub trait StoreClock: Send + Sync + 'static {
    /// The present time by the store's clock; none while it is not known. A store without a clock
    /// starts from `wall`, the time of this machine's wall clock, and continues by the monotonic
    /// clock.
    fn time(&self, wall: Timestamp) -> Option<Timestamp>;
}
