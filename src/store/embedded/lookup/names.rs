//! The names of a tenant's attributes in their table.

use redb::ReadableTable;

use crate::directory::model::timestamp::Timestamp;
use crate::store::attribute_names::{AttributeId, KnownNames};
use crate::store::embedded::error::Fault;

/// All names of a tenant.
pub fn read_names(
    table: &impl ReadableTable<(&'static str, AttributeId), (i64, &'static str)>,
    tenant: &str,
) -> Result<KnownNames, Fault> {
    let mut names = KnownNames::default();
    for row in table.range((tenant, 0)..=(tenant, AttributeId::MAX))? {
        let (key, row) = row?;
        let (id, (since, name)) = (key.value().1, row.value());
        // The ids up to this one belonged to a deleted tenant of this name.
        if name.is_empty() {
            names = KnownNames::new(Timestamp::from_millis(since), id + 1);
            continue;
        }
        if names.is_empty() {
            names = KnownNames::new(Timestamp::from_millis(since), id);
        }
        names.skip_to(id);
        names.push(name);
    }
    Ok(names)
}
