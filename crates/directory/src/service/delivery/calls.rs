//! The calls that create, change, list and delete deliveries.

use std::time::Duration;

use crate::error::{DeliveryError, Error, Invalid};
use crate::model::delivery::record::{DeliveryTarget, EventDelivery};
use crate::model::delivery::step::{DeliveryStep, DeliveryUpdate};
use crate::mutation::MutationKind;
use crate::mutation::read_set::MutationReport;
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::purpose::check_operation_id;
use crate::tenant_cache::KnownTenant;
use crate::text::check_text;

/// The reason of a delivery whose next events the store does not have any more.
pub const EVENTS_EXPIRED: &str = "EVENTS_EXPIRED";

/// Changes of a delivery. Absent ones leave it as it is.
#[derive(Clone, Debug, Default)]
pub struct DeliveryChanges {
    /// The URL of the receiver.
    pub url: Option<String>,
    /// The kinds of events.
    pub kinds: Option<Vec<crate::model::event::EventKind>>,
    /// Whether events have their values.
    pub with_values: Option<bool>,
    /// The secrets of the signatures.
    pub secrets: Option<Vec<String>>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it is paused.
    pub paused: Option<bool>,
}

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
        let goes_on = changes.paused == Some(false);
        let has_lost = present.pause.as_ref().is_some_and(|pause| pause.reason == EVENTS_EXPIRED);
        let position = match goes_on && has_lost {
            true => Some(self.backend.feed.position().await?),
            false => None,
        };
        let paused = changes.paused;
        let target = apply(present.target.clone(), changes);
        let target = Some(target).filter(|target| *target != present.target);
        let update = DeliveryUpdate { target, paused, position };
        let caller = call.context.caller.to_owned();
        let step = DeliveryStep::Update(Box::new(update), caller);
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

/// The target after the changes.
fn apply(target: DeliveryTarget, changes: DeliveryChanges) -> DeliveryTarget {
    DeliveryTarget {
        url: changes.url.unwrap_or(target.url),
        kinds: changes.kinds.unwrap_or(target.kinds),
        with_values: changes.with_values.unwrap_or(target.with_values),
        secrets: changes.secrets.unwrap_or(target.secrets),
        description: changes.description.unwrap_or(target.description),
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
