//! The audit as a file: all changes that are asked for. It is sent while it is read, and ends when
//! the browser leaves.

use std::sync::Arc;

use axum::extract::State;
use polynym_access::Role;
use polynym_client::Client;
use polynym_lines::json;
use serde::Deserialize;

use super::asked::Asked;
use super::wanted::Wanted;
use crate::console::Shared;
use crate::context;
use crate::download::{BYTE_ORDER_MARK, FileParts, Format, csv_row, in_parts};
use crate::failure::Failure;
use crate::form::{Path, Query};
use crate::render::Page;
use crate::requests::RequestPermit;
use crate::short_id::ShortId;
use crate::views::audit_row;
use crate::visit::Visit;

/// The events of one read.
const READ_SIZE: i32 = 500;

/// The query of the file.
#[derive(Deserialize)]
pub struct Parameters {
    format: Format,
}

/// A file in progress.
struct AuditFile {
    client: Client,
    trace: String,
    format: Format,
    wanted: Wanted,
    is_begun: bool,
    is_complete: bool,
    _permit: RequestPermit,
}

/// The file of all changes.
pub async fn all(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path(tenant): Path<String>,
    Query(Parameters { format }): Query<Parameters>,
) -> Page {
    file(&shared, visit, &tenant, &Asked::default(), format).await
}

/// The file of the changes that are asked for.
pub async fn some(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Parameters { format }): Query<Parameters>,
) -> Page {
    let asked = Asked::kept(&visit, id)?;
    file(&shared, visit, &tenant, &asked, format).await
}

async fn file(shared: &Shared, visit: Visit, tenant: &str, asked: &Asked, format: Format) -> Page {
    visit.require(Role::Viewer)?;
    let mut wanted = asked.request(tenant)?;
    wanted.events.page_size = READ_SIZE;
    let file = AuditFile {
        client: visit.client(tenant),
        trace: visit.context.trace.clone(),
        format,
        wanted,
        is_begun: false,
        is_complete: false,
        _permit: shared.requests.of_session(&visit.session, &visit.caller)?,
    };
    in_parts(file, format, "audit", visit.context.trace.clone()).await
}

impl FileParts for AuditFile {
    /// Reads on until there are changes to send.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut part = Vec::new();
        if !self.is_begun && self.format == Format::Csv {
            part = [BYTE_ORDER_MARK.as_bytes(), &csv_row(audit_row::HEADER)].concat();
        }
        // The file begins at once, and names its columns.
        while !self.is_complete && (part.is_empty() || !self.is_begun) {
            self.is_begun = true;
            part.extend(self.read().await?);
        }
        Ok(Some(part).filter(|part| !part.is_empty()))
    }
}

impl AuditFile {
    /// The lines of the next page of events.
    async fn read(&mut self) -> Result<Vec<u8>, Failure> {
        let call = self.wanted.page(&self.client);
        let page = context::scope(self.trace.clone(), call).await?;
        self.is_complete = page.next_page_token.is_empty();
        self.wanted.events.page_token = page.next_page_token;
        let mut lines = Vec::new();
        for event in &page.events {
            match self.format {
                Format::Csv => {
                    let row = audit_row::row(event, &page.display_names);
                    lines.extend(csv_row(row.iter().map(String::as_str)));
                }
                Format::Jsonl => {
                    let event = json::from_message(event).map_err(Failure::Internal)?;
                    lines.extend(event.to_string().into_bytes());
                    lines.push(b'\n');
                }
            }
        }
        Ok(lines)
    }
}
