//! A delivery: its state, its attempts, and what can be done with it.

use polynym_client::Client;
use prost_types::FieldMask;
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;
use v1::replay_delivery_request::Begin;

use crate::form;
use crate::prelude::*;
use crate::views::delivery::{AttemptViews, DeliveryView};

/// The characters of a result that a page shows.
const MAX_RESULT: usize = 32;

#[derive(Template)]
#[template(path = "pages/deliveries/one.html")]
struct DeliveryPage {
    frame: Frame,
    /// The path of the page.
    path: String,
    delivery: DeliveryView,
    events: AttemptViews,
    /// The change that led here, such as `paused`; empty for none.
    done: &'static str,
    /// The result of a test, such as `503`; empty for none.
    result: String,
    /// The users whose events are sent again.
    users: u32,
    commands: Commands,
}

#[derive(Template)]
#[template(path = "pages/deliveries/delete.html")]
struct DeletePage {
    frame: Frame,
    delivery: DeliveryView,
}

/// The changes that lead to the page.
const CHANGES: [&str; 7] =
    ["created", "changed", "paused", "resumed", "taken", "not-taken", "replayed"];

/// The query of the page: the change that led here.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Done {
    done: String,
    result: String,
    users: u32,
}

type Ids = (String, String);

/// The delivery with its latest attempts.
pub async fn page(visit: Visit, Path((tenant, id)): Path<Ids>, Query(done): Query<Done>) -> Page {
    visit.require(Role::Admin)?;
    let client = visit.client(&tenant);
    let delivery = get(&client, &id).await?;
    let request = v1::ListDeliveryAttemptsRequest { tenant: tenant.clone(), delivery_id: id };
    let cli = ["delivery", "attempts", &request.delivery_id, "--tenant", &tenant];
    let commands = Commands::new(&cli, "AdminService/ListDeliveryAttempts", &request);
    let attempts = client.admin().list_delivery_attempts(request).await?;
    let known = CHANGES.iter().find(|change| **change == done.done).copied();
    let is_result = |c: char| c.is_ascii_alphanumeric() || c == '_';
    Ok(render(&DeliveryPage {
        frame: visit.frame(&tenant),
        path: path(&visit, &tenant, &delivery.delivery_id),
        delivery: DeliveryView::of(&delivery),
        events: AttemptViews::of(&attempts),
        done: known.unwrap_or_default(),
        result: done.result.chars().filter(|c| is_result(*c)).take(MAX_RESULT).collect(),
        users: done.users,
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
    let done = if paused { "paused" } else { "resumed" };
    Ok(redirect(&format!("{}?done={done}", path(visit, &tenant, &id))))
}

/// Sends a test message.
pub async fn test(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Admin)?;
    let request = v1::TestDeliveryRequest { delivery_id: id.clone(), ..Default::default() };
    let answer = visit.client(&tenant).admin().test_delivery(request).await?;
    let done = if answer.taken { "taken" } else { "not-taken" };
    let query = format!("done={done}&result={}", answer.result);
    Ok(redirect(&format!("{}?{query}", path(&visit, &tenant, &id))))
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
    Ok(redirect(&format!("{}?done=replayed&users={users}", path(&visit, &tenant, &id))))
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
    Ok(redirect(&format!("{}/deliveries", visit.frame(&tenant).home())))
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
