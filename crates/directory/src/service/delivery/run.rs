//! What a server that delivers events needs: leases, the feed, and the events that wait.

use std::collections::VecDeque;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::delivery::record::EventDelivery;
use crate::model::delivery::step::{DeliveryRunStep, DeliveryStep};
use crate::model::event::Event;
use crate::model::tenant::Tenant;
use crate::mutation::MutationKind;
use crate::mutation::read_set::MutationReport;
use crate::service::Directory;
use crate::stores::{DeliveryKey, FeedPage, LIST_BYTES, PageLimit, ResumeToken};
use crate::tenant_cache::KnownTenant;

/// The events of a user in one read, and those that are read to find the first one.
const READ_EVENTS: usize = 256;
const MAX_READS: usize = 64;

impl Directory {
    /// Up to `limit` deliveries that no server has, those that have waited longest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn due_deliveries(&self, limit: usize) -> Result<Vec<DeliveryKey>, Error> {
        self.backend.deliveries.due_deliveries(self.now().time, limit).await
    }

    /// A new random id of a server.
    pub fn new_server_id(&self) -> LocalityId {
        self.ids.next_id()
    }

    /// Takes a delivery. None if it is paused or gone, or another server has it.
    ///
    /// # Errors
    /// Those of [`crate::stores::Mutations::mutate`].
    pub async fn take_delivery(
        &self,
        key: &DeliveryKey,
        server: LocalityId,
    ) -> Result<Option<EventDelivery>, Error> {
        self.delivery_step(key, DeliveryStep::Take(server)).await
    }

    /// Takes a step of the server that has a delivery. None if it is gone, or the server has lost
    /// it.
    ///
    /// # Errors
    /// Those of [`crate::stores::Mutations::mutate`].
    pub async fn run_delivery(
        &self,
        key: &DeliveryKey,
        server: LocalityId,
        step: DeliveryRunStep,
    ) -> Result<Option<EventDelivery>, Error> {
        self.delivery_step(key, DeliveryStep::Run(server, step)).await
    }

    async fn delivery_step(
        &self,
        (tenant, id): &DeliveryKey,
        step: DeliveryStep,
    ) -> Result<Option<EventDelivery>, Error> {
        let kind = MutationKind::Delivery(id.clone(), step);
        let mutation = self.own_mutation(tenant, KnownTenant::default(), kind);
        match self.backend.mutations.mutate(mutation).await?.report {
            MutationReport::Delivery(delivery) => Ok(Some(*delivery)),
            _ => Ok(None),
        }
    }

    /// The next events of a tenant, after a wait up to `timeout`.
    ///
    /// # Errors
    /// Those of [`crate::stores::EventFeed::events`].
    pub async fn events_to_deliver(
        &self,
        tenant: &Tenant,
        after: &ResumeToken,
        timeout: Duration,
    ) -> Result<FeedPage, Error> {
        self.backend.feed.events(tenant, after, timeout).await
    }

    /// Up to `limit` events of a user with numbers from `first` to `last`, the oldest first. Those
    /// that are gone, as by a purge, are absent.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer; [`Error::Internal`] if the user has too
    /// many later events.
    pub async fn held_events(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        (first, last): (u64, u64),
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        let (mut cursor, mut found) = (None, VecDeque::new());
        for _ in 0..MAX_READS {
            let page = PageLimit::new(READ_EVENTS, LIST_BYTES);
            let read = self.backend.histories.history(tenant, user, cursor, page).await?;
            let Some(part) = read else { return Ok(Vec::new()) };
            let mut is_past = false;
            for event in part.events {
                is_past |= event.sequence < first;
                if (first..=last).contains(&event.sequence) {
                    found.truncate(limit.saturating_sub(1));
                    found.push_front(event);
                }
            }
            cursor = part.next;
            if is_past || cursor.is_none() {
                return Ok(found.into());
            }
        }
        Err(Error::Internal("a user has too many events after those that wait".into()))
    }
}
