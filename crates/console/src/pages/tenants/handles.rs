//! The reserved handles of a tenant.

use polynym_proto::v1::Policies;

use super::listed::save;
use super::policies_page::Shown;
use super::policy_lists::HandlesView;
use crate::prelude::*;

/// Saves the reserved handles.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    let handles = HandlesView::in_form(&form);
    let policies = Policies { reserved_handles: handles.handles(), ..Default::default() };
    let shown =
        |error| Shown { handles: Some(HandlesView { error, ..handles }), ..Shown::default() };
    save(&visit, &name, &form, ("reserved_handles", policies), shown).await
}
