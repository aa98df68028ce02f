//! The start page: the search box, the saved searches of the caller, and what goes on.

use http::HeaderMap;

use super::desk::Desk;
use super::saved::{SavedSearch, SavedSearches};
use crate::prelude::*;

#[derive(Template)]
#[template(path = "pages/home.html")]
struct HomePage {
    frame: Frame,
    saved: Vec<SavedSearch>,
    /// The panels; none for callers who may not view users.
    desk: Option<Desk>,
}

/// The page. A resolver gets the search box alone.
pub async fn page(visit: Visit, headers: HeaderMap, Path(tenant): Path<String>) -> Page {
    let frame = visit.frame(&tenant);
    if !frame.may_view() {
        return Ok(render(&HomePage { frame, saved: Vec::new(), desk: None }));
    }
    let saved = SavedSearches::of(&headers).of_caller(&visit.caller.name);
    let desk = Desk::read(&visit, &tenant).await;
    let names_tenant = visit.caller.tenants.patterns().contains(&tenant);
    if desk.is_partial && !names_tenant {
        // The tenant may not exist. A credential may name one that is still to be created.
        check_tenant(&visit, &tenant).await?;
    }
    let desk = Some(desk);
    Ok(render(&HomePage { frame, saved, desk }))
}

/// Checks that a tenant exists.
///
/// # Errors
/// [`Failure::NoTenant`].
async fn check_tenant(visit: &Visit, tenant: &str) -> Result<(), Failure> {
    let read = visit.client(tenant).admin().get_tenant(v1::GetTenantRequest::default()).await;
    match read.map_err(Failure::from) {
        Err(failure @ Failure::NoTenant) => Err(failure),
        _ => Ok(()),
    }
}
