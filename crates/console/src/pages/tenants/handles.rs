//! The reserved handles of a tenant.

use axum::extract::Path;
use http::StatusCode;
use polynym_access::Role;
use polynym_proto::v1::{Policies, UpdateTenantRequest};
use prost_types::FieldMask;

use super::conflict::{self, Refusal, Seen, update};
use super::handles_form::HandlesView;
use super::policies_page::{Shown, show};
use crate::form::Form;
use crate::render::{Page, redirect};
use crate::visit::Visit;

/// Saves the reserved handles.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let (client, seen) = (visit.client(&name), Seen::in_form(&form));
    let mut handles = HandlesView::in_form(&form);
    let policies = Policies { reserved_handles: handles.handles(), ..Default::default() };
    let request = UpdateTenantRequest {
        policies: Some(policies),
        update_mask: Some(FieldMask { paths: vec!["reserved_handles".to_owned()] }),
        etag: seen.etag.clone(),
        request_id: seen.request_id.clone(),
        ..Default::default()
    };
    let (status, conflict) = match update(&client, request).await {
        Ok(_) => {
            let address = format!("{}/policies?done=saved", visit.frame(&name).home());
            return Ok(redirect(&address));
        }
        Err(Refusal::Conflict) => (StatusCode::CONFLICT, Some(seen.conflict(&client).await?)),
        Err(Refusal::Invalid(message, _)) => {
            handles.error = format!("Nothing was saved: {message}.");
            (StatusCode::UNPROCESSABLE_ENTITY, None)
        }
        Err(Refusal::Other(failure)) => return Err(failure),
    };
    let tenant = conflict::tenant(&client).await?;
    let shown = Shown { status, handles: Some(handles), conflict, ..Shown::default() };
    Ok(show(&visit, &tenant, shown))
}
