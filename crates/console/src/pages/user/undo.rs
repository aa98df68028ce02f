//! Undoing one change that was made in the console.

use std::collections::BTreeSet;
use std::time::Duration;

use polynym_client::Client;
use tokio::time::timeout;

use super::shared_parts::user_id;
use crate::change::{OWN_OPERATION, done};
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
    Ok(match undone.unwrap_or(Ok(Undone::Partly))? {
        Undone::Wholly => visit.done(&format!("{home}/users/{id}"), done("undone")),
        Undone::Nothing => return Err(Failure::NotFound),
        Undone::Partly => redirect(&format!("{home}/operations/{operation}/undo")),
    })
}

/// How far an operation is undone.
enum Undone {
    Wholly,
    /// Some users stay as they are, or it was undone before.
    Partly,
    /// There is no such operation.
    Nothing,
}

/// Whether undoing an operation would change somebody.
///
/// # Errors
/// The API fails.
pub async fn would_undo(client: &Client, tenant: &str, operation: &str) -> Result<bool, Failure> {
    let Some(request) = request(client, tenant, operation).await? else { return Ok(false) };
    let request = v1::UndoOperationRequest { validate_only: true, ..request };
    let answered = timeout(TIMEOUT, run(client, request)).await;
    Ok(answered.unwrap_or(Ok((0, false)))?.0 > 0)
}

/// Undoes a change. Returns how far.
async fn is_undone(client: &Client, tenant: &str, operation: &str) -> Result<Undone, Failure> {
    let Some(request) = request(client, tenant, operation).await? else {
        return Ok(Undone::Nothing);
    };
    let (reverted, is_whole) = run(client, request).await?;
    Ok(if is_whole && reverted > 0 { Undone::Wholly } else { Undone::Partly })
}

/// The call that undoes an operation for all users whom it concerned; none if it concerned none.
async fn request(
    client: &Client,
    tenant: &str,
    operation: &str,
) -> Result<Option<v1::UndoOperationRequest>, Failure> {
    let (tenant, operation_id) = (tenant.to_owned(), operation.to_owned());
    let request = v1::ListEventsRequest {
        tenant: tenant.clone(),
        operation_id: operation_id.clone(),
        page_size: MAX_EVENTS,
        ..Default::default()
    };
    let events = client.directory().list_events(request).await?.events;
    let users: BTreeSet<_> = events.into_iter().map(|event| event.user_id).collect();
    let user_ids = Vec::from_iter(users);
    let request = v1::UndoOperationRequest { tenant, operation_id, user_ids, ..Default::default() };
    Ok(Some(request).filter(|request| !request.user_ids.is_empty()))
}

/// Undoes an operation. Returns the users who got their former values, and whether all did.
async fn run(client: &Client, request: v1::UndoOperationRequest) -> Result<(i64, bool), Failure> {
    let mut answers = client.admin().undo_operation(request).await?;
    let (mut reverted, mut is_whole) = (0, true);
    while let Some(answer) = answers.message().await? {
        reverted = answer.reverted;
        is_whole &= answer.kept.is_empty();
    }
    Ok((reverted, is_whole))
}
