//! The list of tenants, and the form for a new one.

use http::StatusCode;
use polynym_proto::v1::ListTenantsRequest;
use serde::Deserialize;

use crate::prelude::*;
use crate::views::tenant::TenantView;

/// The tenants of a page.
const PAGE_SIZE: i32 = 25;

#[derive(Template)]
#[template(path = "pages/tenants/list.html")]
struct ListPage {
    frame: Frame,
    tenants: Vec<TenantView>,
    prefix: String,
    pager: Pager,
    request_id: String,
    /// The name in the form for a new tenant.
    typed: String,
    error: String,
    commands: Commands,
}

/// The query of the list.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    after: Trail,
    prefix: String,
    /// The tenant of the page before.
    t: String,
}

/// The list.
pub async fn page(visit: Visit, Query(parameters): Query<Parameters>) -> Page {
    show(&visit, parameters, StatusCode::OK, String::new(), String::new()).await
}

/// The list with the error of a new tenant.
pub async fn with_error(visit: &Visit, typed: &str, error: String, status: StatusCode) -> Page {
    show(visit, Parameters::default(), status, typed.to_owned(), error).await
}

async fn show(
    visit: &Visit,
    parameters: Parameters,
    status: StatusCode,
    typed: String,
    error: String,
) -> Page {
    visit.require(Role::Viewer)?;
    let Parameters { after, prefix, t } = parameters;
    let request = ListTenantsRequest {
        tenant: prefix.clone(),
        page_size: PAGE_SIZE,
        page_token: after.token().to_owned(),
    };
    let answer = visit.client("").admin().list_tenants(request.clone()).await?;
    let shown = ListTenantsRequest { page_token: String::new(), ..request };
    let cli = ["tenant", "list"];
    let frame = visit.server_frame(&t);
    let address = frame.server_page("tenants", &[("prefix", &prefix)]);
    let page = ListPage {
        pager: after.pager(&address, answer.tenants.len(), &answer.next_page_token),
        frame,
        tenants: answer.tenants.iter().map(TenantView::of).collect(),
        prefix,
        request_id: uuid::Uuid::new_v4().to_string(),
        typed,
        error,
        commands: Commands::from_request(&cli, &shown),
    };
    Ok::<_, Failure>(render_with_status(&page, status))
}
