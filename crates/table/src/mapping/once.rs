//! Each field that has one value, and each column of a field, is mapped once.

use std::collections::BTreeSet;

use crate::columns::Columns;
use crate::field::Field;

/// Fails if a field that has one value, or a field's column, occurs twice.
pub(super) fn check<'f>(
    fields: impl Iterator<Item = (&'f Field, &'f [usize])>,
    columns: &Columns,
) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (field, own) in fields {
        let name = match field {
            Field::Attribute(name, _) => Field::Attribute(name.clone(), None).name(),
            field if field.is_identity() => {
                let column = own.first().map_or("", |column| columns.name(*column));
                format!("{}={column}", field.name())
            }
            field => field.name(),
        };
        if seen.contains(&name) {
            return Err(format!("--map {name}: is mapped twice: keep one"));
        }
        seen.insert(name);
    }
    Ok(())
}
