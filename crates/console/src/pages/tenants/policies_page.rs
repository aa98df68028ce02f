//! The page of policies: the current ones, or those that somebody typed.

use askama::Template;
use axum::body::Body;
use http::{Response, StatusCode};
use polynym_presentation::policy::POLICIES;
use polynym_proto::v1::{GetTenantRequest, Tenant};

use super::conflict::{Conflict, Seen};
use super::policy_form::{FieldView, encode};
use super::policy_lists::{HandlesView, RegionsView};
use crate::frame::Frame;
use crate::render::render_with_status;
use crate::views::tenant::TenantView;
use crate::views::{Commands, Time};
use crate::visit::Visit;
use crate::words::filters;

/// The message of every form of policies.
pub const SAVED: &str = "The policies are saved.";

#[derive(Template)]
#[template(path = "pages/tenants/policies.html")]
struct PoliciesPage {
    frame: Frame,
    tenant: TenantView,
    fields: Vec<FieldView>,
    handles: HandlesView,
    regions: RegionsView,
    /// The policies that the page shows, for the form.
    base: String,
    seen: Seen,
    error: String,
    conflict: Option<Conflict>,
    /// Since when older events are being removed.
    removing: Option<Time>,
    /// Since when the history is complete.
    since: Option<Time>,
    commands: Commands,
}

impl PoliciesPage {
    /// Whether something that was typed is refused.
    fn has_error(&self) -> bool {
        ![&self.error, &self.handles.error, &self.regions.error].iter().all(|text| text.is_empty())
    }
}

/// What is shown in place of the current policies.
#[derive(Default)]
pub struct Shown {
    pub status: StatusCode,
    pub fields: Option<Vec<FieldView>>,
    pub handles: Option<HandlesView>,
    pub regions: Option<RegionsView>,
    pub error: String,
    pub conflict: Option<Conflict>,
}

/// The page of a tenant.
pub fn show(visit: &Visit, tenant: &Tenant, shown: Shown) -> Response<Body> {
    let policies = tenant.policies.clone().unwrap_or_default();
    let request = GetTenantRequest { tenant: tenant.tenant.clone() };
    let cli = ["tenant", "get", "--tenant", &tenant.tenant];
    let current = || POLICIES.iter().map(|policy| FieldView::of(policy, &policies)).collect();
    render_with_status(
        &PoliciesPage {
            frame: visit.frame(&tenant.tenant),
            fields: shown.fields.unwrap_or_else(current),
            handles: shown.handles.unwrap_or_else(|| HandlesView::of(&policies)),
            regions: shown.regions.unwrap_or_else(|| RegionsView::of(&policies)),
            base: encode(&policies),
            seen: Seen::of(tenant),
            tenant: TenantView::of(tenant),
            error: shown.error,
            conflict: shown.conflict,
            removing: Time::of(policies.history_change_time.as_ref()),
            since: Time::of(policies.history_since_time.as_ref()),
            commands: Commands::new(&cli, "AdminService/GetTenant", &request),
        },
        shown.status,
    )
}
