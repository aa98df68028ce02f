//! The definitions of a tenant's attributes.

use std::collections::BTreeMap;

use polynym_proto::v1::Tenant;
use polynym_table::ValueType;

/// The types of a tenant's attributes.
pub fn types(tenant: &Tenant) -> BTreeMap<String, ValueType> {
    let definitions = tenant.policies.iter().flat_map(|policies| &policies.attribute_definitions);
    let typed = definitions.filter_map(|definition| {
        Some((definition.name.clone(), ValueType::of(definition.r#type())?))
    });
    typed.collect()
}
