//! Policies that are lists, in forms.

use polynym_proto::v1::{Policies, ReservedHandles};

use crate::form::Form;

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

/// The countries in a form.
pub struct RegionsView {
    /// Their codes, separated by commas.
    pub text: String,
    /// The reason why they are refused; may be empty.
    pub error: String,
}

impl RegionsView {
    /// The countries of policies.
    pub fn of(policies: &Policies) -> Self {
        Self { text: policies.phone_regions.join(", "), error: String::new() }
    }
}
