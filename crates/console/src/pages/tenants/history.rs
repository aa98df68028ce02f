//! The history of a tenant: changes of its policies, and purged users.

use polynym_proto::v1::ListTenantHistoryRequest;
use serde::Deserialize;

use crate::prelude::*;
use crate::views::tenant::TenantEventView;

/// The events of a page.
const PAGE_SIZE: i32 = 25;

#[derive(Template)]
#[template(path = "pages/tenants/history.html")]
struct HistoryPage {
    frame: Frame,
    events: Vec<TenantEventView>,
    pager: Pager,
    commands: Commands,
}

/// The query of the list.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    after: Trail,
}

/// The history, newest first.
pub async fn page(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(Parameters { after }): Query<Parameters>,
) -> Page {
    visit.require(Role::Viewer)?;
    let mut request = ListTenantHistoryRequest {
        tenant: tenant.clone(),
        page_size: PAGE_SIZE,
        page_token: after.token().to_owned(),
        ..Default::default()
    };
    let answer = visit.client(&tenant).admin().list_tenant_history(request.clone()).await?;
    request.page_token.clear();
    let cli = ["tenant", "history", "--tenant", &tenant];
    let frame = visit.frame(&tenant);
    let address = format!("{}/policies/history", frame.home());
    Ok(render(&HistoryPage {
        frame,
        pager: after.pager(&address, answer.events.len(), &answer.next_page_token),
        events: answer.events.iter().map(TenantEventView::of).collect(),
        commands: Commands::from_request(&cli, &request),
    }))
}
