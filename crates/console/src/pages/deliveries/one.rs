//! A delivery: its state, its attempts, and what can be done with it.

use polynym_client::Client;
use prost_types::FieldMask;
use url::form_urlencoded::byte_serialize;
use v1::replay_delivery_request::Begin;

use crate::form;
use crate::prelude::*;
use crate::session::Message;
use crate::views::delivery::{AttemptViews, DeliveryView, result_words};

#[derive(Template)]
#[template(path = "pages/deliveries/one.html")]
struct DeliveryPage {
    frame: Frame,
    /// The path of the page.
    path: String,
    delivery: DeliveryView,
    events: AttemptViews,
    commands: Commands,
}

#[derive(Template)]
#[template(path = "pages/deliveries/delete.html")]
struct DeletePage {
    frame: Frame,
    delivery: DeliveryView,
}

type Ids = (String, String);

/// The delivery with its latest attempts.
pub async fn page(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Admin)?;
    let client = visit.client(&tenant);
    let delivery = get(&client, &id).await?;
    let request = v1::ListDeliveryAttemptsRequest { tenant: tenant.clone(), delivery_id: id };
    let cli = ["delivery", "attempts", &request.delivery_id, "--tenant", &tenant];
    let commands = Commands::new(&cli, "AdminService/ListDeliveryAttempts", &request);
    let attempts = client.admin().list_delivery_attempts(request).await?;
    Ok(render(&DeliveryPage {
        frame: visit.frame(&tenant),
        path: path(&visit, &tenant, &delivery.delivery_id),
        delivery: DeliveryView::of(&delivery),
        events: AttemptViews::of(&attempts),
        commands,
    }))
}

/// Leads to the page of the delivery: the address is one of a form.
pub async fn back(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Admin)?;
    Ok(redirect(&path(&visit, &tenant, &id)))
}

/// Pauses a delivery.
pub async fn pause(visit: Visit, Path(ids): Path<Ids>) -> Page {
    set_paused(&visit, ids, true).await
}

/// Lets a delivery go on.
pub async fn resume(visit: Visit, Path(ids): Path<Ids>) -> Page {
    set_paused(&visit, ids, false).await
}

async fn set_paused(visit: &Visit, (tenant, id): Ids, paused: bool) -> Page {
    visit.require(Role::Admin)?;
    let request = v1::UpdateDeliveryRequest {
        delivery_id: id.clone(),
        update_mask: Some(FieldMask { paths: vec!["paused".to_owned()] }),
        paused,
        ..Default::default()
    };
    visit.client(&tenant).admin().update_delivery(request).await?;
    let message = match paused {
        true => Message::done(
            "paused",
            "The delivery is paused. No event is lost as long as it is stored.",
        ),
        false => Message::done("resumed", "The delivery goes on."),
    };
    Ok(visit.done(&path(visit, &tenant, &id), message))
}

/// Sends a test message.
pub async fn test(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Admin)?;
    let request = v1::TestDeliveryRequest { delivery_id: id.clone(), ..Default::default() };
    let answer = visit.client(&tenant).admin().test_delivery(request).await?;
    let result = result_words(&answer.result);
    let text = match answer.taken {
        true => format!("The receiver has taken a test message: {result}"),
        false => format!("The receiver has not taken a test message: {result}"),
    };
    let message = Message { is_warning: !answer.taken, ..Message::done("tested", text) };
    Ok(visit.done(&path(&visit, &tenant, &id), message))
}

/// Sends events again, from a time on, or one of them.
pub async fn replay(visit: Visit, Path((tenant, id)): Path<Ids>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let begin = match form.get("event") {
        "" => form::time("From", form.get("from"))?.map(Begin::From),
        event => Some(Begin::EventId(event.to_owned())),
    };
    let Some(begin) = begin else {
        return Err(Failure::Form("From: write a time, or the id of an event.".to_owned()));
    };
    let request = v1::ReplayDeliveryRequest {
        delivery_id: id.clone(),
        begin: Some(begin),
        ..Default::default()
    };
    let users = visit.client(&tenant).admin().replay_delivery(request).await?.users;
    let message = Message::done("replayed", format!("Users whose events are sent again: {users}"));
    Ok(visit.done(&path(&visit, &tenant, &id), message))
}

/// Asks before a delivery is deleted.
pub async fn confirm(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Admin)?;
    let delivery = get(&visit.client(&tenant), &id).await?;
    let delivery = DeliveryView::of(&delivery);
    Ok(render(&DeletePage { frame: visit.frame(&tenant), delivery }))
}

/// Deletes a delivery, and leads to the list.
pub async fn delete(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Admin)?;
    let request = v1::DeleteDeliveryRequest { delivery_id: id, ..Default::default() };
    visit.client(&tenant).admin().delete_delivery(request).await?;
    let list = format!("{}/deliveries", visit.frame(&tenant).home());
    Ok(visit.done(&list, Message::done("deleted", "The delivery was deleted.")))
}

/// The path of a delivery's page.
pub fn path(visit: &Visit, tenant: &str, id: &str) -> String {
    let id: String = byte_serialize(id.as_bytes()).collect();
    format!("{}/deliveries/of/{id}", visit.frame(tenant).home())
}

/// The delivery of a tenant.
///
/// # Errors
/// There is none, or the API fails.
pub async fn get(client: &Client, id: &str) -> Result<v1::Delivery, Failure> {
    let all = client.admin().list_deliveries(v1::ListDeliveriesRequest::default()).await?;
    let found = all.deliveries.into_iter().find(|delivery| delivery.delivery_id == id);
    found.ok_or(Failure::NotFound)
}
