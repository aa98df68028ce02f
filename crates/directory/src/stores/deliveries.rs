//! Reads of deliveries. Mutations write them.

use async_trait::async_trait;

use crate::error::Error;
use crate::model::delivery::record::EventDelivery;
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;

/// The tenant and the id of a delivery.
pub type DeliveryKey = (Tenant, String);

/// The deliveries of tenants.
#[async_trait]
pub trait Deliveries: Send + Sync + 'static {
    /// The delivery of a tenant with this id.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn delivery(&self, tenant: &Tenant, id: &str) -> Result<Option<EventDelivery>, Error>;

    /// All deliveries of a tenant that can be read, in the order of their ids.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn deliveries(&self, tenant: &Tenant) -> Result<Vec<EventDelivery>, Error>;

    /// Up to `limit` deliveries of all tenants whose [`EventDelivery::due_time`] is not after
    /// `now`, by that time.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn due_deliveries(&self, now: Timestamp, limit: usize)
    -> Result<Vec<DeliveryKey>, Error>;

    /// Removes the deliveries of a tenant that is being deleted.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if nothing was removed; [`Error::OutcomeUnknown`].
    async fn remove_deliveries(&self, tenant: &Tenant) -> Result<(), Error>;
}
