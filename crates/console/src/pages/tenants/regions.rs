//! The countries in which a tenant's phone numbers without one are read.

use polynym_proto::v1::Policies;

use super::listed::save;
use super::policies_page::Shown;
use crate::prelude::*;

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

/// Saves the countries.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    let text = form.get("regions").to_uppercase();
    let regions = text.split([',', ' ']).filter(|region| !region.is_empty());
    let phone_regions = regions.map(str::to_owned).collect();
    let policies = Policies { phone_regions, ..Default::default() };
    let shown = |error| Shown { regions: Some(RegionsView { text, error }), ..Shown::default() };
    save(&visit, &name, &form, ("phone_regions", policies), shown).await
}
