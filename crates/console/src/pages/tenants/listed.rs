//! Policies that are lists: each has a form of its own.

use http::StatusCode;
use polynym_proto::v1::{Policies, UpdateTenantRequest};
use prost_types::FieldMask;

use super::conflict::{self, Refusal, Seen, update};
use super::policies_page::{SAVED, Shown, show};
use crate::prelude::*;
use crate::session::Message;

/// Saves the policy at a path. If the server refuses it, shows what was typed: `shown` makes that
/// of the reason, which is empty after a conflict.
pub async fn save(
    visit: &Visit,
    name: &str,
    form: &Form,
    (path, policies): (&str, Policies),
    shown: impl FnOnce(String) -> Shown,
) -> Page {
    visit.require(Role::Admin)?;
    let (client, seen) = (visit.client(name), Seen::in_form(form));
    let request = UpdateTenantRequest {
        policies: Some(policies),
        update_mask: Some(FieldMask { paths: vec![path.to_owned()] }),
        etag: seen.etag.clone(),
        request_id: seen.request_id.clone(),
        ..Default::default()
    };
    let shown = match update(&client, request).await {
        Ok(_) => {
            let address = format!("{}/policies", visit.frame(name).home());
            return Ok(visit.done(&address, Message::done("saved", SAVED)));
        }
        Err(Refusal::Conflict) => {
            let conflict = Some(seen.conflict(&client).await?);
            Shown { status: StatusCode::CONFLICT, conflict, ..shown(String::new()) }
        }
        Err(Refusal::Invalid(message, _)) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Shown { status, ..shown(format!("Nothing was saved. {message}")) }
        }
        Err(Refusal::Other(failure)) => return Err(failure),
    };
    Ok(show(visit, &conflict::tenant(&client).await?, shown))
}
