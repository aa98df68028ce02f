//! Files that a browser saves.

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, Response};

/// The type of tables.
pub const CSV: &str = "text/csv; charset=utf-8";

/// A response that a browser saves under this name. The name has no character that needs quotes.
pub fn attachment(body: impl Into<Body>, content_type: &'static str, name: &str) -> Response<Body> {
    let mut response = body.into().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    response
}

/// A row of a table.
pub fn csv_row<'c>(cells: impl IntoIterator<Item = &'c str>) -> Vec<u8> {
    polynym_table::csv_row(cells, b',').unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(csv_row(["USER_MERGED", ""]), b"USER_MERGED,\r\n");
        assert_eq!(csv_row(["a,\"b\"", "c"]), b"\"a,\"\"b\"\"\",c\r\n");
    }
}
