//! The field by which a search orders users.

use super::field::Field;
use super::parser::parse_path;
use super::restriction::Path;
use crate::error::{Error, Invalid};

/// The maximum size of `order_by`.
const MAX_BYTES: usize = 512;

/// Parses `order_by`: `display_name`, `create_time` or an attribute; `None` if it is empty.
///
/// # Errors
/// [`Error::Invalid`] for other fields, several fields, and a descending order.
pub fn parse(text: &str) -> Result<Option<Field>, Error> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_BYTES {
        return Err(invalid("has at most 512 bytes"));
    }
    let field = match text.rsplit_once(char::is_whitespace) {
        Some((_, last)) if last.eq_ignore_ascii_case("desc") => {
            return Err(invalid("the order is ascending: desc is not supported"));
        }
        Some((field, last)) if last.eq_ignore_ascii_case("asc") => field,
        _ => text,
    };

    match parse_path(field) {
        Ok(Path::Field(field)) if field != Field::State => Ok(Some(field)),
        _ => Err(invalid("is one field: display_name, create_time or attributes.NAME")),
    }
}

fn invalid(rule: &str) -> Error {
    Error::invalid(Invalid::Field, "order_by", rule)
}
