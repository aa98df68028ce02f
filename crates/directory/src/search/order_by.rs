//! The field in whose order users are asked for.

use super::field::Field;
use super::parser::parse_path;
use super::restriction::Path;
use crate::error::{Error, Invalid};

/// The longest text of an order.
const BYTES: usize = 512;

/// Reads `order_by`: `display_name`, `create_time` or an attribute; nothing where it is empty.
///
/// # Errors
/// [`Error::Invalid`] for other fields, several fields, and a descending order.
pub fn parse(text: &str) -> Result<Option<Field>, Error> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > BYTES {
        return Err(fault("has at most 512 bytes"));
    }
    let text = match text.rsplit_once(char::is_whitespace) {
        Some((_, last)) if last.eq_ignore_ascii_case("desc") => {
            return Err(fault("the order is ascending: desc is not supported"));
        }
        Some((field, last)) if last.eq_ignore_ascii_case("asc") => field,
        _ => text,
    };

    match parse_path(text) {
        Ok(Path::Field(field)) if field != Field::State => Ok(Some(field)),
        _ => Err(fault("is one field: display_name, create_time or attributes.NAME")),
    }
}

fn fault(rule: &str) -> Error {
    Error::invalid(Invalid::Field, "order_by", rule)
}
