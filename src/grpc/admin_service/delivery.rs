//! Deliveries of events to receivers.

use prost_types::Duration as ProtoDuration;

use crate::grpc::api::Api;
use crate::grpc::convert;
use crate::grpc::status::Refusal;
use polynym_access::Call;
use polynym_deliver::{AddressPolicy, Secret};
use polynym_directory::{
    DeliveryChanges, DeliveryTarget, Error, Invalid, Replay,
    encoded::delivery_message::{attempts_message, delivery_message},
};
use polynym_proto::v1;
use v1::replay_delivery_request::Begin;

/// The secrets of a delivery.
const MAX_SECRETS: usize = 2;

impl Api {
    pub async fn create_delivery(
        &self,
        call: &Call,
        request: v1::CreateDeliveryRequest,
    ) -> Result<v1::CreateDeliveryResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        check_url(self.deliverer.policy(), &request.url)?;
        check_secrets(&request.secrets)?;
        let target = DeliveryTarget {
            url: request.url,
            kinds: convert::event_kinds(&request.types)?,
            with_values: !request.ids_only,
            secrets: request.secrets,
            description: request.description,
        };
        let id = &request.delivery_id;
        let created = self.directory.create_delivery(mutation, id, target).await?;
        Ok(v1::CreateDeliveryResponse { delivery: Some(delivery_message(&created)) })
    }

    pub async fn update_delivery(
        &self,
        call: &Call,
        request: v1::UpdateDeliveryRequest,
    ) -> Result<v1::UpdateDeliveryResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        let id = request.delivery_id.clone();
        let changes = changes(self.deliverer.policy(), request)?;
        let updated = self.directory.update_delivery(mutation, &id, changes).await?;
        Ok(v1::UpdateDeliveryResponse { delivery: Some(delivery_message(&updated)) })
    }

    pub async fn list_deliveries(
        &self,
        call: &Call,
        request: v1::ListDeliveriesRequest,
    ) -> Result<v1::ListDeliveriesResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let deliveries = self.directory.deliveries(&context).await?;
        let deliveries = deliveries.iter().map(delivery_message).collect();
        Ok(v1::ListDeliveriesResponse { deliveries })
    }

    pub async fn delete_delivery(
        &self,
        call: &Call,
        request: v1::DeleteDeliveryRequest,
    ) -> Result<v1::DeleteDeliveryResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        self.directory.delete_delivery(mutation, &request.delivery_id).await?;
        Ok(v1::DeleteDeliveryResponse {})
    }

    pub async fn list_delivery_attempts(
        &self,
        call: &Call,
        request: v1::ListDeliveryAttemptsRequest,
    ) -> Result<v1::ListDeliveryAttemptsResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let delivery = self.directory.delivery(&context, &request.delivery_id).await?;
        Ok(attempts_message(&delivery))
    }

    pub async fn replay_delivery(
        &self,
        call: &Call,
        request: v1::ReplayDeliveryRequest,
    ) -> Result<v1::ReplayDeliveryResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        let replay = match &request.begin {
            Some(Begin::From(from)) => Replay::From(convert::timestamp("from", from)?),
            Some(Begin::EventId(event)) => Replay::Event(event),
            None => {
                let rule = "is missing: name a time or an event";
                return Err(Error::invalid(Invalid::Field, "begin", rule).into());
            }
        };
        let users = self.directory.replay_delivery(mutation, &request.delivery_id, replay).await?;
        Ok(v1::ReplayDeliveryResponse { users: users as i32 })
    }

    pub async fn test_delivery(
        &self,
        call: &Call,
        request: v1::TestDeliveryRequest,
    ) -> Result<v1::TestDeliveryResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let delivery = self.directory.delivery(&context, &request.delivery_id).await?;
        let (taken, result, took) = self.deliverer.test(&delivery).await?;
        let took = ProtoDuration::try_from(took).ok();
        Ok(v1::TestDeliveryResponse { taken, result, took })
    }
}

/// The fields that the mask names.
fn changes(
    policy: &AddressPolicy,
    request: v1::UpdateDeliveryRequest,
) -> Result<DeliveryChanges, Error> {
    let mut changes = DeliveryChanges::default();
    for path in request.update_mask.map(|mask| mask.paths).unwrap_or_default() {
        match &*path {
            "url" => {
                check_url(policy, &request.url)?;
                changes.url = Some(request.url.clone());
            }
            "types" => changes.kinds = Some(convert::event_kinds(&request.types)?),
            "ids_only" => changes.with_values = Some(!request.ids_only),
            "description" => changes.description = Some(request.description.clone()),
            "secrets" => {
                check_secrets(&request.secrets)?;
                changes.secrets = Some(request.secrets.clone());
            }
            "paused" => changes.paused = Some(request.paused),
            _ => {
                let rule = "has a path that is no field of a delivery";
                return Err(Error::invalid(Invalid::UpdateMask, "update_mask", rule));
            }
        }
    }
    Ok(changes)
}

fn check_url(policy: &AddressPolicy, url: &str) -> Result<(), Error> {
    let checked = policy.parse_url(url).map(drop);
    checked.map_err(|fault| Error::invalid(Invalid::Field, "url", fault.to_string()))
}

fn check_secrets(secrets: &[String]) -> Result<(), Error> {
    if secrets.is_empty() || secrets.len() > MAX_SECRETS {
        let rule = format!("takes 1 to {MAX_SECRETS} secrets");
        return Err(Error::invalid(Invalid::Field, "secrets", rule));
    }
    for (n, secret) in secrets.iter().enumerate() {
        let field = || format!("secrets[{n}]");
        Secret::parse(secret).map_err(|rule| Error::invalid(Invalid::Field, field(), rule))?;
    }
    Ok(())
}
