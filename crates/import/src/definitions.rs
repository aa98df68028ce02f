//! The definitions for tables in the policies of a tenant.

use polynym_proto::v1::Tenant;
use polynym_table::{Definitions, ValueType};

/// The types of a tenant's attributes, and the regions of its telephone numbers.
pub fn definitions(tenant: &Tenant) -> Definitions {
    let attributes = tenant.policies.iter().flat_map(|policies| &policies.attribute_definitions);
    let typed = attributes.filter_map(|definition| {
        Some((definition.name.clone(), ValueType::of(definition.r#type())?))
    });
    let regions = tenant.policies.iter().flat_map(|policies| &policies.phone_regions);
    Definitions { types: typed.collect(), regions: regions.cloned().collect() }
}
