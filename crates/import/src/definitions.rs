//! The definitions of a tenant's attributes.

use std::collections::BTreeMap;

use polynym_proto::v1::{AttributeType, Tenant};
use polynym_table::ValueType;

/// The types of a tenant's attributes.
pub fn types(tenant: &Tenant) -> BTreeMap<String, ValueType> {
    let definitions = tenant.policies.iter().flat_map(|policies| &policies.attribute_definitions);
    let typed = definitions.filter_map(|definition| {
        let value_type = match definition.r#type() {
            AttributeType::String => ValueType::String,
            AttributeType::Int => ValueType::Int,
            AttributeType::Double => ValueType::Double,
            AttributeType::Bool => ValueType::Bool,
            AttributeType::Time => ValueType::Time,
            AttributeType::List => ValueType::List,
            AttributeType::Unspecified => return None,
        };
        Some((definition.name.clone(), value_type))
    });
    typed.collect()
}
