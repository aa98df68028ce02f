//! An operation, such as an import: its changes, and how to undo them.

use std::sync::Arc;

use super::audit::{self, Changes};
use super::period::{PAGE_SIZE, Period};
use super::progress;
use super::wanted::Wanted;
use crate::change::Sent;
use crate::console::Shared;
use crate::prelude::*;

#[derive(Template)]
#[template(path = "pages/history/operation.html")]
struct OperationPage {
    frame: Frame,
    operation: String,
    /// The name of the file that it imported; empty if it is not known.
    name: String,
    changes: Changes,
    next: String,
    commands: Commands,
}

/// The changes of an operation.
pub async fn page(
    visit: Visit,
    Path((tenant, operation)): Path<(String, String)>,
    Query(Period { after, .. }): Query<Period>,
) -> Page {
    visit.require(Role::Viewer)?;
    let request = v1::ListEventsRequest {
        tenant: tenant.clone(),
        operation_id: operation.clone(),
        page_size: PAGE_SIZE,
        page_token: after,
        ..Default::default()
    };
    let commands = audit::commands(&tenant, &request);
    let changes = audit::read(&visit.client(&tenant), Wanted::of_all(request)).await?;
    let next = match &*changes.token {
        "" => String::new(),
        token => Period::default().next(token),
    };
    let (frame, name) = (visit.frame(&tenant), visit.import_name(&tenant, &operation));
    Ok(render(&OperationPage { frame, operation, name, changes, next, commands }))
}

/// What undoing an operation would do.
pub async fn preview(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path((tenant, operation)): Path<(String, String)>,
) -> Page {
    let permit = shared.requests.of_session(&visit.session, &visit.caller)?;
    progress::page(visit, permit, tenant, operation).await
}

/// Has the server undo an operation, and leads to the page of the bulk change that does it.
pub async fn undo(
    visit: Visit,
    Path((tenant, operation_id)): Path<(String, String)>,
    form: Form,
) -> Page {
    visit.require(Role::Admin)?;
    let sent = Sent::new(visit, tenant, form)?;
    let undo = v1::bulk_action::Undo { operation_id };
    let request = v1::StartBulkChangeRequest {
        action: Some(v1::BulkAction { action: Some(v1::bulk_action::Action::Undo(undo)) }),
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let answer = sent.client().registry().start_bulk_change(sent.call(request)?).await?;
    let id = answer.bulk_change.ok_or(Failure::NotFound)?.bulk_id;
    Ok(redirect(&format!("{}/bulk/{id}", sent.home())))
}
