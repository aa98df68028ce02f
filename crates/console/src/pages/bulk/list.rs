//! The bulk changes of a tenant.

use askama::Template;
use polynym_access::Role;
use polynym_proto::v1::ListBulkChangesRequest;
use serde::Deserialize;

use crate::form::{Path, Query};
use crate::frame::Frame;
use crate::render::{Page, render};
use crate::views::bulk::BulkView;
use crate::views::{Commands, Pager, Trail};
use crate::visit::Visit;
use crate::words::filters;

/// The bulk changes of a page.
const PAGE_SIZE: i32 = 25;

#[derive(Template)]
#[template(path = "pages/bulk/list.html")]
struct ListPage {
    frame: Frame,
    bulks: Vec<BulkView>,
    pager: Pager,
    commands: Commands,
}

/// The query of the page.
#[derive(Deserialize)]
pub struct Position {
    #[serde(default)]
    after: Trail,
}

/// The bulk changes of a tenant, the latest first.
pub async fn page(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(Position { after }): Query<Position>,
) -> Page {
    visit.require(Role::Viewer)?;
    let request = ListBulkChangesRequest {
        tenant: tenant.clone(),
        page_size: PAGE_SIZE,
        page_token: after.token().to_owned(),
    };
    let cli = ["bulk", "list", "--tenant", &tenant];
    let method = "RegistryService/ListBulkChanges";
    let commands = Commands::new(&cli, method, &request);
    let answer = visit.client(&tenant).registry().list_bulk_changes(request).await?;
    let bulks = answer.bulk_changes.iter().map(BulkView::of);
    let named = |bulk: BulkView| {
        let name = visit.import_name(&tenant, &bulk.undone);
        bulk.named(name)
    };
    let bulks: Vec<_> = bulks.map(named).collect();
    let frame = visit.frame(&tenant);
    let pager =
        after.pager(&format!("{}/bulk", frame.home()), bulks.len(), &answer.next_page_token);
    Ok(render(&ListPage { frame, bulks, pager, commands }))
}
