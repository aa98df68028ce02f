//! An operation, such as an import: its changes, and how to undo them.

use std::sync::Arc;

use super::audit::{self, Changes};
use super::period::{PAGE_SIZE, Period};
use super::progress::{self, Undoing};
use crate::console::Shared;
use crate::prelude::*;

#[derive(Template)]
#[template(path = "pages/history/operation.html")]
struct OperationPage {
    frame: Frame,
    operation: String,
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
    let changes = audit::read(&visit.client(&tenant), request).await?;
    let next = match &*changes.token {
        "" => String::new(),
        token => Period::default().next(token),
    };
    Ok(render(&OperationPage { frame: visit.frame(&tenant), operation, changes, next, commands }))
}

/// What undoing an operation would do.
pub async fn preview(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path((tenant, operation)): Path<(String, String)>,
) -> Page {
    let permit = shared.requests.of_session(&visit.session, &visit.caller)?;
    progress::page(visit, permit, Undoing { tenant, operation, is_preview: true }).await
}

/// Undoes an operation. The same again goes on after an interruption.
pub async fn undo(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path((tenant, operation)): Path<(String, String)>,
) -> Page {
    let permit = shared.requests.of_session(&visit.session, &visit.caller)?;
    progress::page(visit, permit, Undoing { tenant, operation, is_preview: false }).await
}
