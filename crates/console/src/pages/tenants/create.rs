//! Creates a tenant.

use http::StatusCode;
use polynym_client::{Client, Kind};
use polynym_proto::v1::tenant_event::Change;
use polynym_proto::v1::{
    GetTenantRequest, ListTenantHistoryRequest, Policies, UpdateTenantRequest,
};

use super::conflict::{Refusal, update};
use super::list::with_error;
use crate::prelude::*;
use crate::session::Message;

/// Creates a tenant with the default policies, and leads to them.
pub async fn create(visit: Visit, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let (name, request_id) = (form.get("name"), form.get("request_id"));
    if name.is_empty() {
        let error = "Write a name, such as acme.".to_owned();
        return with_error(&visit, name, error, StatusCode::UNPROCESSABLE_ENTITY).await;
    }
    let client = visit.client(name);
    let known = client.admin().get_tenant(GetTenantRequest::default()).await;
    match known {
        Ok(_) if is_by(&client, request_id).await? => {}
        Ok(_) => {
            let error = "A tenant of this name exists already.".to_owned();
            return with_error(&visit, name, error, StatusCode::CONFLICT).await;
        }
        Err(error) if error.kind() == Kind::NotFound => {
            let request = UpdateTenantRequest {
                policies: Some(Policies::default()),
                request_id: request_id.to_owned(),
                ..Default::default()
            };
            match update(&client, request).await {
                Ok(_) => {}
                Err(refusal) => return refused(&visit, name, refusal).await,
            }
        }
        Err(error) => return refused(&visit, name, error.into()).await,
    }
    let text = "The tenant is created. These are its policies.";
    let policies = format!("{}/policies", visit.frame(name).home());
    Ok(visit.done(&policies, Message::done("created", text)))
}

async fn refused(visit: &Visit, name: &str, refusal: Refusal) -> Page {
    match refusal {
        Refusal::Invalid(message, _) => {
            with_error(visit, name, message, StatusCode::UNPROCESSABLE_ENTITY).await
        }
        Refusal::Conflict => {
            Err(Failure::Form("Somebody else changed the tenant in the meantime.".to_owned()))
        }
        Refusal::Other(failure) => Err(failure),
    }
}

/// Whether the tenant was created by this request, so that the same form sent twice succeeds.
async fn is_by(client: &Client, request_id: &str) -> Result<bool, Failure> {
    let request = ListTenantHistoryRequest { page_size: 10, ..Default::default() };
    let events = client.admin().list_tenant_history(request).await?.events;
    let created = |change: &Option<Change>| matches!(change, Some(Change::Created(_)));
    let mut created = events.iter().filter(|event| created(&event.change));
    Ok(!request_id.is_empty() && created.any(|event| event.request_id == request_id))
}
