//! The calls that create, change, list and delete deliveries.

use std::time::Duration;

use crate::error::{DeliveryError, Error, Invalid};
use crate::model::delivery::record::{DeliveryTarget, EventDelivery};
use crate::model::delivery::step::{DeliveryChanges, DeliveryStep, DeliveryUpdate, EVENTS_EXPIRED};
use crate::mutation::MutationKind;
use crate::mutation::read_set::MutationReport;
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::purpose::check_operation_id;
use crate::tenant_cache::KnownTenant;
use crate::text::check_text;

impl Directory {
    /// Creates a delivery from now on. The caller has checked the URL and the secrets. Returns a
    /// present one with the same id and target.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Delivery`],
    /// [`Error::WatchUnsupported`], and those of [`crate::stores::Mutations::mutate`].
    pub async fn create_delivery(
        &self,
        call: MutationCall<'_>,
        id: &str,
        target: DeliveryTarget,
    ) -> Result<EventDelivery, Error> {
        check_id(id)?;
        check_text("description", &target.description)?;
        let context = &call.context;
        let known = self.tenant_to_change(&call).await?;
        if known.policies.history_retention.is_zero() {
            let rule = "needs a history: the tenant keeps none";
            return Err(Error::invalid(Invalid::Field, "tenant", rule));
        }
        let position = self.backend.feed.position().await?;
        let (tenant, now) = (context.tenant.clone(), context.now.time);
        let new = EventDelivery {
            caller: context.caller.to_owned(),
            ..EventDelivery::new(tenant, id, target, position, now)
        };
        let created = self.delivery_call(call, id, DeliveryStep::Create(Box::new(new))).await?;
        self.delivery_changed.notify_one();
        created.ok_or_else(lost)
    }

    /// Changes a delivery. The caller has checked the URL and the secrets.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Delivery`], and those of [`crate::stores::Mutations::mutate`].
    pub async fn update_delivery(
        &self,
        call: MutationCall<'_>,
        id: &str,
        changes: DeliveryChanges,
    ) -> Result<EventDelivery, Error> {
        check_id(id)?;
        check_text("description", changes.description.as_deref().unwrap_or_default())?;
        let present = self.delivery(&call.context, id).await?;
        let has_lost = present.pause.is_some_and(|pause| pause.reason == EVENTS_EXPIRED);
        let end = match changes.paused {
            Some(false) if has_lost => self.backend.feed.position().await?,
            _ => Vec::new(),
        };
        let caller = call.context.caller.to_owned();
        let step = DeliveryStep::Update(Box::new(DeliveryUpdate { changes, end, caller }));
        let updated = self.delivery_call(call, id, step).await?;
        self.delivery_changed.notify_one();
        updated.ok_or_else(lost)
    }

    /// Deletes a delivery, if it is there.
    ///
    /// # Errors
    /// [`Error::Invalid`], and those of [`crate::stores::Mutations::mutate`].
    pub async fn delete_delivery(&self, call: MutationCall<'_>, id: &str) -> Result<(), Error> {
        check_id(id)?;
        self.delivery_call(call, id, DeliveryStep::Delete).await.map(drop)
    }

    /// The delivery of a tenant with this id.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Delivery`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn delivery(
        &self,
        context: &RequestContext<'_>,
        id: &str,
    ) -> Result<EventDelivery, Error> {
        check_id(id)?;
        self.known_tenant(&context.tenant).await?;
        let found = self.backend.deliveries.delivery(&context.tenant, id).await?;
        found.ok_or(Error::Delivery(DeliveryError::NotFound))
    }

    /// The deliveries of a tenant, in the order of their ids.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn deliveries(
        &self,
        context: &RequestContext<'_>,
    ) -> Result<Vec<EventDelivery>, Error> {
        self.known_tenant(&context.tenant).await?;
        self.backend.deliveries.deliveries(&context.tenant).await
    }

    /// Waits until somebody changes a delivery on this server, or until the time is over.
    pub async fn wait_for_deliveries(&self, time: Duration) {
        tokio::select! {
            () = self.delivery_changed.notified() => {}
            () = self.clock.sleep(time) => {}
        }
    }

    /// Takes a step on behalf of a caller, and logs it. The id of the delivery makes repeated calls
    /// safe, not that of the request.
    pub(super) async fn delivery_call(
        &self,
        call: MutationCall<'_>,
        id: &str,
        step: DeliveryStep,
    ) -> Result<Option<EventDelivery>, Error> {
        let log = MutationLog::new(&call, None);
        let kind = MutationKind::Delivery(id.to_owned(), step);
        let mutation = self.mutation(call, kind, KnownTenant::default())?;
        let outcome = self.backend.mutations.mutate(mutation).await;
        log.write(&outcome);
        match outcome?.report {
            MutationReport::Delivery(delivery) => Ok(Some(*delivery)),
            _ => Ok(None),
        }
    }
}

fn lost() -> Error {
    Error::Internal("a step of a delivery without it".into())
}

fn check_id(id: &str) -> Result<(), Error> {
    if id.is_empty() {
        return Err(Error::invalid(Invalid::Field, "delivery_id", "is missing"));
    }
    check_operation_id("delivery_id", id)
}
