//! Files that a browser saves.

use axum::body::Body;
use axum::response::IntoResponse;
use csv::{Terminator, WriterBuilder};
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

/// A row of a table (RFC 4180).
pub fn csv_row(cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let written = writer.write_record(cells).ok().and_then(|()| writer.into_inner().ok());
    written.unwrap_or_default()
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
