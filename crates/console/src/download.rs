//! Files that a browser saves.

use std::io;

use axum::body::Body;
use axum::response::IntoResponse;
use futures_util::{StreamExt, stream};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, Response};
use serde::Deserialize;

use crate::failure::Failure;
use crate::render::Page;

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

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Csv,
    Jsonl,
}

/// The mark by which spreadsheets recognise UTF-8.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A source of the parts of a file.
pub trait FileParts: Send + 'static {
    /// The next part; none after the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Failure>> + Send;
}

/// A file that is sent while it is made, and made no further once the browser leaves.
///
/// # Errors
/// The first part fails: this has a page. If a later one fails, the file breaks off, which browsers
/// report.
pub async fn in_parts(
    mut parts: impl FileParts,
    format: Format,
    name: &str,
    trace: String,
) -> Page {
    let first = parts.next().await?.unwrap_or_default();
    let rest = stream::unfold(Some((parts, trace)), |state| async {
        let (mut parts, trace) = state?;
        match parts.next().await {
            Ok(part) => Some((Ok(part?), Some((parts, trace)))),
            Err(failure) => {
                tracing::warn!(trace, "a download of the console ended early");
                Some((Err(io::Error::other(format!("{failure:?}"))), None))
            }
        }
    });
    let first = stream::once(async { Ok::<_, io::Error>(first) });
    let body = Body::from_stream(first.chain(rest));
    Ok(match format {
        Format::Csv => attachment(body, CSV, &format!("{name}.csv")),
        Format::Jsonl => attachment(body, "application/jsonl", &format!("{name}.jsonl")),
    })
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
