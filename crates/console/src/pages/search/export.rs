//! A search as a file: all its pages, with the columns of the screen. It is sent while it is read,
//! and ends when the browser leaves.

use std::sync::Arc;

use http::HeaderMap;
use polynym_client::Client;
use polynym_lines::UserLine;
use polynym_proto::v1::{SearchUsersRequest, User};
use polynym_table::ExportColumns;
use serde::Deserialize;

use super::columns::Columns;
use super::order::Order;
use crate::console::Shared;
use crate::context;
use crate::download::{BYTE_ORDER_MARK, FileParts, Format, csv_row, in_parts};
use crate::prelude::*;
use crate::requests::RequestPermit;
use crate::short_id::ShortId;
use crate::views::reading::{self, Reading};

/// The users of one read.
const PAGE_SIZE: i32 = 500;

/// The query of the file.
#[derive(Deserialize)]
pub struct Parameters {
    format: Format,
    #[serde(default)]
    order: Order,
}

/// A file in progress.
struct Export {
    client: Client,
    trace: String,
    columns: Columns,
    /// The columns of a table; none for lines.
    table: Option<ExportColumns>,
    request: SearchUsersRequest,
    is_begun: bool,
    is_complete: bool,
    _permit: RequestPermit,
}

/// The file of a search.
pub async fn file(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Parameters { format, order }): Query<Parameters>,
) -> Page {
    visit.require(Role::Viewer)?;
    let text = visit.session.queries.get(id).ok_or(Failure::SearchGone)?;
    let filter = match reading::read(&text, &visit.context.region) {
        Reading::Filter(filter) => filter,
        Reading::Words(words) if words.is_empty() => words,
        _ => return Err(Failure::NotFound),
    };
    let permit = shared.requests.of_session(&visit.session, &visit.caller)?;
    let columns = Columns::of(&headers);
    let order_by = order.field().to_owned();
    let request = SearchUsersRequest { tenant, filter, order_by, ..Default::default() };
    let export = Export::new(&visit, permit, columns, format, request)?;
    in_parts(export, format, "users", visit.context.trace.clone()).await
}

impl FileParts for Export {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.is_complete {
            return Ok(None);
        }
        let users = self.read().await?;
        let head = if self.is_begun { Vec::new() } else { self.begin(&users) };
        self.is_begun = true;
        Ok(Some([head, self.part(users)?].concat()))
    }
}

impl Export {
    /// An export of the users of a search.
    fn new(
        visit: &Visit,
        permit: RequestPermit,
        columns: Columns,
        format: Format,
        search: SearchUsersRequest,
    ) -> Result<Self, Failure> {
        let table = match format {
            Format::Jsonl => None,
            Format::Csv => {
                let fields = ExportColumns::parse(&columns.fields().join(","));
                Some(fields.map_err(Failure::Internal)?)
            }
        };
        let read_mask = Some(columns.read_mask());
        Ok(Self {
            client: visit.client(&search.tenant),
            trace: visit.context.trace.clone(),
            columns,
            table,
            request: SearchUsersRequest { page_size: PAGE_SIZE, read_mask, ..search },
            is_begun: false,
            is_complete: false,
            _permit: permit,
        })
    }

    /// The beginning of a table: the names of the columns. Empty for JSON Lines.
    fn begin(&mut self, first: &[User]) -> Vec<u8> {
        let Some(table) = &mut self.table else { return Vec::new() };
        table.infer_types(first.iter());
        [BYTE_ORDER_MARK.as_bytes(), &csv_row(table.header().iter().map(String::as_str))].concat()
    }

    /// Reads the next page.
    async fn read(&mut self) -> Result<Vec<User>, Failure> {
        let directory = self.client.directory();
        let call = directory.search_users(self.request.clone());
        let page = context::scope(self.trace.clone(), call).await?;
        self.is_complete = page.next_page_token.is_empty();
        self.request.page_token = page.next_page_token;
        Ok(page.users)
    }

    /// The users of a page, with the columns of the screen.
    fn part(&self, users: Vec<User>) -> Result<Vec<u8>, Failure> {
        let mut part = Vec::new();
        for mut user in users {
            self.columns.prune(&mut user);
            part.extend(self.line(&user)?);
        }
        Ok(part)
    }

    fn line(&self, user: &User) -> Result<Vec<u8>, Failure> {
        let Some(table) = &self.table else {
            let mut line = serde_json::to_vec(&UserLine { user, internals: None });
            line.iter_mut().for_each(|line| line.push(b'\n'));
            return line.map_err(|error| Failure::Internal(error.to_string()));
        };
        let cells = table.row(user).map_err(Failure::Internal)?;
        Ok(csv_row(cells.iter().map(String::as_str)))
    }
}
