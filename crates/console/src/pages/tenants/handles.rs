//! The reserved handles of a tenant.

use polynym_proto::v1::{Policies, ReservedHandles};

use super::listed::save;
use super::policies_page::Shown;
use crate::prelude::*;

/// The reserved handles in a form.
pub struct HandlesView {
    /// Whether they are Polynym's default list.
    pub is_default: bool,
    /// The tenant's own list, one a line.
    pub text: String,
    /// The reason why they are refused; may be empty.
    pub error: String,
}

impl HandlesView {
    /// The reserved handles of policies.
    pub fn of(policies: &Policies) -> Self {
        let list = policies.reserved_handles.as_ref();
        let text = list.map(|list| list.handles.join("\n")).unwrap_or_default();
        Self { is_default: list.is_none(), text, error: String::new() }
    }

    /// The reserved handles as typed.
    pub fn in_form(form: &Form) -> Self {
        let is_default = form.get("list") != "own";
        Self { is_default, text: form.raw("handles").to_owned(), error: String::new() }
    }

    /// The handles: separated by line breaks or commas.
    pub fn handles(&self) -> Option<ReservedHandles> {
        let handles = self.text.split([',', '\r', '\n']).map(str::trim);
        let handles = handles.filter(|handle| !handle.is_empty()).map(str::to_owned).collect();
        (!self.is_default).then_some(ReservedHandles { handles })
    }
}

/// Saves the reserved handles.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    let handles = HandlesView::in_form(&form);
    let policies = Policies { reserved_handles: handles.handles(), ..Default::default() };
    let shown =
        |error| Shown { handles: Some(HandlesView { error, ..handles }), ..Shown::default() };
    save(&visit, &name, &form, ("reserved_handles", policies), shown).await
}
