//! The countries in which a tenant's phone numbers without one are read.

use polynym_proto::v1::Policies;

use super::listed::save;
use super::policies_page::Shown;
use super::policy_lists::RegionsView;
use crate::prelude::*;

/// Saves the countries.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    let text = form.get("regions").to_uppercase();
    let regions = text.split([',', ' ']).filter(|region| !region.is_empty());
    let phone_regions = regions.map(str::to_owned).collect();
    let policies = Policies { phone_regions, ..Default::default() };
    let shown = |error| Shown { regions: Some(RegionsView { text, error }), ..Shown::default() };
    save(&visit, &name, &form, ("phone_regions", policies), shown).await
}
