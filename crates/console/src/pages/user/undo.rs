//! Undoing one change that was made in the console.

use std::collections::BTreeSet;
use std::time::Duration;

use polynym_client::Client;
use tokio::time::timeout;

use super::shared_parts::user_id;
use crate::change::OWN_OPERATION;
use crate::prelude::*;

/// The most events of one change: those of the users whom it concerned.
const MAX_EVENTS: i32 = 1_000;
/// The time after which the page of the operation says how far the undoing is.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Undoes a change for all users whom it concerned. If some stay as they are, the page of the
/// operation says why.
pub async fn undo(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let (id, operation) = (user_id(&id)?, form.get("operation"));
    let request_id = operation.strip_prefix(OWN_OPERATION).map(uuid::Uuid::parse_str);
    if request_id.is_none_or(|id| id.is_err()) {
        return Err(Failure::NotFound);
    }
    let (client, home) = (visit.client(&tenant), visit.frame(&tenant).home());
    let undone = timeout(TIMEOUT, is_undone(&client, &tenant, operation)).await;
    Ok(match undone.unwrap_or(Ok(false))? {
        true => redirect(&format!("{home}/users/{id}?done=undone")),
        false => redirect(&format!("{home}/operations/{operation}/undo")),
    })
}

/// Undoes a change. Returns whether all of it is undone.
async fn is_undone(client: &Client, tenant: &str, operation: &str) -> Result<bool, Failure> {
    let (tenant, operation_id) = (tenant.to_owned(), operation.to_owned());
    let request = v1::ListEventsRequest {
        tenant: tenant.clone(),
        operation_id: operation_id.clone(),
        page_size: MAX_EVENTS,
        ..Default::default()
    };
    let events = client.directory().list_events(request).await?.events;
    let users: BTreeSet<_> = events.into_iter().map(|event| event.user_id).collect();
    if users.is_empty() {
        return Ok(false);
    }
    let user_ids = Vec::from_iter(users);
    let request = v1::UndoOperationRequest { tenant, operation_id, user_ids, ..Default::default() };
    let mut answers = client.admin().undo_operation(request).await?;
    let (mut reverted, mut is_whole) = (0, true);
    while let Some(answer) = answers.message().await? {
        reverted = answer.reverted;
        is_whole &= answer.kept.is_empty();
    }
    Ok(is_whole && reverted > 0)
}
