//! A bulk change: its progress, what failed, and what can be done with it.

use askama::Template;
use polynym_access::Role;
use polynym_client::Client;
use polynym_proto::v1;
use serde::Deserialize;
use uuid::Uuid;
use v1::batch_get_users_response::result::Outcome;
use v1::start_bulk_change_request::Users;

use super::selection;
use crate::change::Sent;
use crate::download::{self, attachment, csv_row};
use crate::failure::Failure;
use crate::form::{Form, Path, Query};
use crate::frame::Frame;
use crate::pages::user::restorable_until;
use crate::render::{Page, redirect, render};
use crate::short_id::ShortId;
use crate::views::bulk::BulkView;
use crate::views::person::People;
use crate::views::{Commands, Time, UserView};
use crate::visit::Visit;
use crate::words::filters;

/// The bytes of the id of a bulk change.
const MAX_ID_BYTES: usize = 64;
/// The users that a dry run shows.
const MAX_USERS: i32 = 10;

#[derive(Template)]
#[template(path = "pages/bulk/one.html")]
struct BulkPage {
    frame: Frame,
    bulk: BulkView,
    /// The first users whom it is about, after a dry run.
    users: Vec<UserView>,
    /// The short id of the users of its list, if this session has selected them.
    selection: Option<ShortId>,
    /// The address of the page, with the selection.
    address: String,
    /// Until when users that are deleted now can be restored.
    restorable: Option<Time>,
    /// The bulk change by which this dry run was applied; empty if it was not.
    applied: String,
    request_id: Uuid,
    commands: Commands,
}

#[derive(Template)]
#[template(path = "partials/bulk.html")]
struct Progress {
    frame: Frame,
    bulk: BulkView,
    users: Vec<UserView>,
    selection: Option<ShortId>,
    address: String,
    restorable: Option<Time>,
    applied: String,
    request_id: Uuid,
}

type Ids = (String, String);

/// The query of the page.
#[derive(Deserialize)]
pub struct Origin {
    /// The short id of the selected users.
    selection: Option<ShortId>,
}

/// The page, or its part that changes while the bulk change runs.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<Ids>,
    Query(Origin { selection }): Query<Origin>,
) -> Page {
    visit.require(Role::Viewer)?;
    let client = visit.client(&tenant);
    let change = get(&client, &id).await?;
    let selected = selection.and_then(|selection| selection::of_bulk(&visit, &id, selection));
    let selection = selection.filter(|_| selected.is_some());
    let bulk = BulkView::of(&change);
    let name = visit.import_name(&tenant, &bulk.undone);
    let mut bulk = bulk.named(name);
    let failed = bulk.failures.iter().map(|failure| &*failure.user_id);
    bulk.people = People::read(&client, failed).await;
    let (mut users, mut restorable) = (Vec::new(), None);
    let applied = applied(&client, &bulk).await;
    if applied.is_empty() && bulk.can_be_applied(selected.is_some()) {
        users = match selected {
            Some(ids) => first_listed(&client, ids).await?,
            None => first_matching(&client, change.filter).await?,
        };
        restorable = restorable_if_deleted(&client, &bulk).await;
    }
    let (frame, request_id) = (visit.frame(&tenant), Uuid::new_v4());
    let address = selection::address(&frame.home(), &id, selection);
    if visit.context.is_partial {
        return Ok(render(&Progress {
            frame,
            bulk,
            users,
            selection,
            address,
            restorable,
            applied,
            request_id,
        }));
    }
    let request = v1::GetBulkChangeRequest { tenant: tenant.clone(), bulk_id: id };
    let cli = ["bulk", "get", &request.bulk_id, "--tenant", &tenant];
    let method = "RegistryService/GetBulkChange";
    let commands = Commands::new(&cli, method, &request);
    Ok(render(&BulkPage {
        frame,
        bulk,
        users,
        selection,
        address,
        restorable,
        applied,
        request_id,
        commands,
    }))
}

/// Leads to the page of the bulk change: the address is one of a form.
pub async fn back(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    Ok(redirect(&path(&visit, &tenant, &id)))
}

/// Does what a dry run has counted.
pub async fn apply(visit: Visit, Path((tenant, id)): Path<Ids>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let client = sent.client();
    let tried = get(&client, &id).await?;
    if !tried.validate_only {
        return Err(Failure::Form("This is not a dry run: it was started already.".to_owned()));
    }
    let selection = sent.form.get("selection").parse().ok();
    let ids = selection.and_then(|selection| selection::of_bulk(&sent.visit, &id, selection));
    // Without its list, the change would be of all users.
    if tried.listed_users != ids.as_ref().map_or(0, Vec::len) as i64 {
        let message = "This session does not have the list of users of the dry run: apply it \
                       where it was started.";
        return Err(Failure::Form(message.to_owned()));
    }
    let applied = applied_id(&id);
    if get(&client, &applied).await.is_ok() {
        return Ok(redirect(&path(&sent.visit, &sent.tenant, &applied)));
    }
    let request = v1::StartBulkChangeRequest {
        bulk_id: applied,
        filter: tried.filter,
        users: ids.map(|user_ids| Users { user_ids }),
        action: tried.action,
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let answer = client.registry().start_bulk_change(sent.call(request)?).await?;
    let id = answer.bulk_change.ok_or(Failure::NotFound)?.bulk_id;
    Ok(redirect(&path(&sent.visit, &sent.tenant, &id)))
}

/// The id of the bulk change that applies a dry run, which is applied once. Empty if that of the
/// dry run leaves no room.
fn applied_id(dry_run: &str) -> String {
    let id = format!("of-{dry_run}");
    if id.len() > MAX_ID_BYTES { String::new() } else { id }
}

/// Stops a bulk change.
pub async fn stop(visit: Visit, Path((tenant, bulk_id)): Path<Ids>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let request = v1::StopBulkChangeRequest { bulk_id: bulk_id.clone(), ..Default::default() };
    visit.client(&tenant).registry().stop_bulk_change(request).await?;
    Ok(redirect(&path_of_form(&visit, &tenant, &bulk_id, &form)))
}

/// Resumes a bulk change.
pub async fn resume(visit: Visit, Path((tenant, bulk_id)): Path<Ids>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let request = v1::ResumeBulkChangeRequest { bulk_id: bulk_id.clone(), ..Default::default() };
    visit.client(&tenant).registry().resume_bulk_change(request).await?;
    Ok(redirect(&path_of_form(&visit, &tenant, &bulk_id, &form)))
}

/// The users that failed, as a table.
pub async fn failures(visit: Visit, Path((tenant, id)): Path<Ids>) -> Page {
    visit.require(Role::Viewer)?;
    let change = get(&visit.client(&tenant), &id).await?;
    let mut table = csv_row(["user_id", "reason"]);
    for failure in &change.failures {
        table.extend(csv_row([&*failure.user_id, &*failure.reason]));
    }
    Ok(attachment(table, download::CSV, "failures.csv"))
}

fn path(visit: &Visit, tenant: &str, id: &str) -> String {
    selection::address(&visit.frame(tenant).home(), id, None)
}

/// The address of the page with the selection of a form.
fn path_of_form(visit: &Visit, tenant: &str, id: &str, form: &Form) -> String {
    selection::address(&visit.frame(tenant).home(), id, form.get("selection").parse().ok())
}

async fn get(client: &Client, id: &str) -> Result<v1::BulkChange, Failure> {
    let request = v1::GetBulkChangeRequest { bulk_id: id.to_owned(), ..Default::default() };
    client.registry().get_bulk_change(request).await?.bulk_change.ok_or(Failure::NotFound)
}

/// The id of the bulk change that applied a dry run; empty if none did, and while it runs.
async fn applied(client: &Client, bulk: &BulkView) -> String {
    let (id, has_ended) = (applied_id(&bulk.id), bulk.is_dry_run && !bulk.is_running());
    if has_ended && get(client, &id).await.is_ok() { id } else { String::new() }
}

/// Until when users that a bulk change deletes now can be restored.
async fn restorable_if_deleted(client: &Client, bulk: &BulkView) -> Option<Time> {
    if bulk.is_deletion() { restorable_until(client).await } else { None }
}

/// The first users of a list.
async fn first_listed(
    client: &Client,
    mut user_ids: Vec<String>,
) -> Result<Vec<UserView>, Failure> {
    user_ids.truncate(MAX_USERS as usize);
    let read_mask = Some(read_mask());
    let request = v1::BatchGetUsersRequest { user_ids, read_mask, ..Default::default() };
    let results = client.directory().batch_get_users(request).await?.results;
    let users = results.into_iter().filter_map(|result| match result.outcome? {
        // A bulk change leaves a merged user, and its primary.
        Outcome::Found(found) => found.user.filter(|_| found.merged_from.is_empty()),
        Outcome::Error(_) => None,
    });
    Ok(users.map(|user| UserView::of(&user)).collect())
}

/// The fields of the users that are shown.
fn read_mask() -> prost_types::FieldMask {
    let paths = ["user_id", "display_name", "state", "identities"];
    prost_types::FieldMask { paths: paths.map(str::to_owned).into() }
}

/// The first users that a filter matches.
async fn first_matching(client: &Client, filter: String) -> Result<Vec<UserView>, Failure> {
    let request = v1::SearchUsersRequest {
        filter,
        page_size: MAX_USERS,
        read_mask: Some(read_mask()),
        ..Default::default()
    };
    let page = client.directory().search_users(request).await?;
    Ok(page.users.iter().map(UserView::of).collect())
}
