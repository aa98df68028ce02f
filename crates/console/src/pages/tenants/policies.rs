//! The policies of a tenant as a form: what is typed is reviewed before it is saved.

use axum::body::Body;
use http::{Response, StatusCode};
use polynym_access::Role;
use polynym_presentation::policy::POLICIES;
use polynym_proto::v1::{Tenant, UpdateTenantRequest};
use prost_types::FieldMask;

use super::conflict::{self, Refusal, Seen, update};
use super::policies_page::{SAVED, Shown, show};
use super::policy_form::{FieldView, Typed};
use super::review;
use crate::failure::Failure;
use crate::form::{Form, Path};
use crate::render::{Page, redirect};
use crate::session::Message;
use crate::visit::Visit;

/// The policies.
pub async fn page(visit: Visit, Path(name): Path<String>) -> Page {
    visit.require(Role::Viewer)?;
    let tenant = conflict::tenant(&visit.client(&name)).await?;
    Ok(show(&visit, &tenant, Shown::default()))
}

/// Reviews what was typed or, after the review, saves it.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let (client, typed, seen) = (visit.client(&name), Typed::read(&form), Seen::in_form(&form));
    if !typed.is_valid() {
        let tenant = conflict::tenant(&client).await?;
        let error = "Nothing was saved: correct the marked policies.".to_owned();
        return Ok(invalid(&visit, &tenant, typed.fields, error));
    }
    let address = format!("{}/policies", visit.frame(&name).home());
    if typed.mask.is_empty() {
        return Ok(redirect(&address));
    }
    let is_reviewed = form.has("reviewed");
    let request = UpdateTenantRequest {
        policies: Some(typed.policies.clone()),
        update_mask: Some(FieldMask { paths: typed.paths() }),
        etag: seen.etag.clone(),
        request_id: seen.request_id.clone(),
        validate_only: !is_reviewed,
        ..Default::default()
    };
    match update(&client, request).await {
        Ok(_) if is_reviewed => Ok(visit.done(&address, Message::done("saved", SAVED))),
        Ok(_) => review::page(&visit, &client, &name, &form, &typed).await,
        Err(refusal) => refused(&visit, &name, typed, &seen, refusal).await,
    }
}

async fn refused(visit: &Visit, name: &str, typed: Typed, seen: &Seen, why: Refusal) -> Page {
    let client = visit.client(name);
    match why {
        Refusal::Conflict => {
            let (tenant, conflict) =
                tokio::try_join!(conflict::tenant(&client), seen.conflict(&client))?;
            let applied = typed.applied_to(&tenant.policies.clone().unwrap_or_default());
            let fields = POLICIES.iter().map(|policy| FieldView::of(policy, &applied)).collect();
            let (status, conflict) = (StatusCode::CONFLICT, Some(conflict));
            let shown = Shown { status, fields: Some(fields), conflict, ..Shown::default() };
            Ok(show(visit, &tenant, shown))
        }
        Refusal::Invalid(message, path) => {
            let tenant = conflict::tenant(&client).await?;
            let mut fields = typed.fields;
            let path = path.strip_prefix("policies.").unwrap_or(&path);
            for field in fields.iter_mut().filter(|field| field.policy.path == path) {
                field.error.clone_from(&message);
            }
            Ok(invalid(visit, &tenant, fields, format!("Nothing was saved. {message}")))
        }
        Refusal::Other(failure) => Err::<_, Failure>(failure),
    }
}

fn invalid(
    visit: &Visit,
    tenant: &Tenant,
    fields: Vec<FieldView>,
    error: String,
) -> Response<Body> {
    let (status, fields) = (StatusCode::UNPROCESSABLE_ENTITY, Some(fields));
    show(visit, tenant, Shown { status, fields, error, ..Shown::default() })
}
