//! The files of a session, and uploading one.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{FromRequest, Multipart, Request};
use http::{Response, StatusCode};
use polynym_access::Role;
use polynym_client::Kind;
use polynym_import::HEAD_BYTES;
use polynym_presentation::count;
use polynym_proto::v1::GetTenantRequest;
use polynym_table::Definitions;
use tokio::time::timeout;
use uuid::Uuid;

use super::form_body::Unused;
use super::session_files::path;
use crate::failure::Failure;
use crate::form::Path;
use crate::frame::Frame;
use crate::imports::{self, JobKind, KeptMappings, MAX_FILES, Settings, Slot, Upload, UploadNames};
use crate::render::{Page, redirect, render};
use crate::short_id::ShortId;
use crate::views::undoings::Undoings;
use crate::visit::Visit;
use crate::words::filters;

/// The time to wait for more of a file.
const IDLE: Duration = Duration::from_secs(30);
/// The bytes that are written at once.
const BLOCK_BYTES: usize = 1 << 20;
/// The bytes that are read and dropped after an error, so that the browser sees it.
const MAX_DROPPED_BYTES: usize = 512 << 20;
/// The maximum bytes of a field that is no file, and of a file's name.
const MAX_TEXT_BYTES: usize = 256;

#[derive(Template)]
#[template(path = "pages/import/files.html")]
struct FilesPage {
    frame: Frame,
    files: Vec<FileRow>,
    undoings: Undoings,
    /// Whether the session may have one more file.
    has_room: bool,
    request_id: String,
    error: String,
}

/// A file in the list.
struct FileRow {
    number: ShortId,
    name: String,
    bytes: String,
    state: &'static str,
    /// The import, if it can be undone.
    operation: String,
}

/// The page.
pub async fn page(visit: Visit, Path(tenant): Path<String>) -> Page {
    visit.require(Role::Admin)?;
    Ok(files(&visit, &tenant, String::new()).await)
}

async fn files(visit: &Visit, tenant: &str, error: String) -> Response<Body> {
    let uploads = &visit.session.uploads;
    let files: Vec<_> = uploads.of_tenant(tenant).iter().map(|upload| row(upload)).collect();
    let undoings = match files.iter().all(|file| file.operation.is_empty()) {
        true => Undoings::default(),
        false => Undoings::read(&visit.client(tenant)).await,
    };
    let request_id = Uuid::new_v4().to_string();
    let has_room = uploads.count() < MAX_FILES;
    render(&FilesPage { frame: visit.frame(tenant), files, undoings, has_room, request_id, error })
}

fn row(upload: &Upload) -> FileRow {
    let state = upload.snapshot();
    let text = match upload.running().map(|job| job.kind) {
        Some(JobKind::Read) => "being read",
        Some(JobKind::DryRun) => "dry run in progress",
        Some(JobKind::Import) => "import in progress",
        None if state.import.is_some() => "imported",
        None if state.dry_run.is_some() => "dry run done",
        None if matches!(state.reading, Some(Err(_))) => "cannot be read",
        None => "uploaded",
    };
    FileRow {
        number: upload.number,
        name: upload.name.clone(),
        bytes: count::bytes(upload.file.bytes()),
        state: text,
        operation: state
            .import
            .filter(|import| import.has_changed())
            .map_or_else(String::new, |import| import.operation_id.clone()),
    }
}

/// Receives a file, and begins to read it.
pub async fn upload(visit: Visit, Path(tenant): Path<String>, request: Request) -> Page {
    visit.require(Role::Admin)?;
    match receive(&visit, &tenant, request).await {
        Ok(upload) => Ok(redirect(&path(&visit, &upload))),
        Err(Failure::Form(error)) => {
            let mut response = files(&visit, &tenant, error).await;
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(response)
        }
        Err(other) => Err(other),
    }
}

async fn receive(visit: &Visit, tenant: &str, request: Request) -> Result<Arc<Upload>, Failure> {
    let definitions = definitions(visit, tenant).await?;
    let kept = KeptMappings::read(request.headers(), &visit.caller.name);
    let unused = Unused::default();
    let form = Multipart::from_request(unused.bound(request), &()).await;
    let mut form = form.map_err(|_| Failure::Form("The form has no file.".to_owned()))?;
    let mut request_id = None;
    loop {
        let field = timeout(IDLE, form.next_field()).await.map_err(|_| stalled())?;
        let Some(mut field) = field.map_err(|_| broken())? else {
            return Err(Failure::Form("Choose a file.".to_owned()));
        };
        match field.name() {
            Some("request_id") if request_id.is_none() => {
                request_id = Some(text(&mut field).await?);
                unused.reset();
            }
            Some("file") => {
                let request_id = request_id.unwrap_or_else(|| Uuid::new_v4().to_string());
                let mut field = FileField { field, unused };
                let known = visit.session.uploads.of_request(tenant, &request_id);
                let received = match known {
                    Some(upload) => Ok(upload),
                    None => one(visit, tenant, &request_id, &mut field).await,
                };
                field.drain().await?;
                let upload = received?;
                begin(visit, &upload, definitions, kept);
                return Ok(upload);
            }
            _ => return Err(Failure::Form("The form has an unknown field.".to_owned())),
        }
    }
}

/// Receives one file.
async fn one(
    visit: &Visit,
    tenant: &str,
    request_id: &str,
    file: &mut FileField<'_>,
) -> Result<Arc<Upload>, Failure> {
    let name: String =
        file.field.file_name().unwrap_or_default().chars().take(MAX_TEXT_BYTES).collect();
    if name.is_empty() {
        return Err(Failure::Form("Choose a file.".to_owned()));
    }
    let slot = visit.session.uploads.receive(request_id)?;
    let start = content(&slot, file).await?;
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
    if slot.file.bytes() == 0 {
        return Err(Failure::Form("The file is empty.".to_owned()));
    }
    // The columns of tables can be chosen and mended here.
    let export = polynym_import::guess(start).filter(|format| !format.is_table());
    let has_table_form = polynym_import::is_table_name(name.as_ref()) || !start.starts_with(b"{");
    let is_table = export.is_none() && has_table_form;
    let (tenant, request_id) = (tenant.to_owned(), request_id.to_owned());
    Ok(slot.keep(UploadNames { name, tenant, request_id, is_table, export }))
}

/// Writes the content of a field. Returns its first bytes.
async fn content(slot: &Slot<'_>, file: &mut FileField<'_>) -> Result<Vec<u8>, Failure> {
    let (mut block, mut start) = (Vec::new(), Vec::new());
    loop {
        let chunk = file.chunk().await?;
        let is_end = chunk.is_none();
        block.extend_from_slice(&chunk.unwrap_or_default());
        if start.is_empty() && (is_end || block.len() >= HEAD_BYTES) {
            start = block.iter().take(HEAD_BYTES).copied().collect();
        }
        if block.len() >= BLOCK_BYTES || is_end {
            slot.append(std::mem::take(&mut block)).await?;
        }
        if is_end {
            return Ok(start);
        }
    }
}

/// The text of a short field.
async fn text(field: &mut Field<'_>) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = next_chunk(field).await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_TEXT_BYTES {
            return Err(Failure::Form("A field of the form is too long.".to_owned()));
        }
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

/// The next bytes of a field; none at its end.
async fn next_chunk(field: &mut Field<'_>) -> Result<Option<Bytes>, Failure> {
    let chunk = timeout(IDLE, field.chunk()).await.map_err(|_| stalled())?;
    chunk.map_err(|_| broken())
}

/// The field with the file.
struct FileField<'f> {
    field: Field<'f>,
    unused: Unused,
}

impl FileField<'_> {
    /// The next bytes of the file; none at its end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let chunk = next_chunk(&mut self.field).await;
        self.unused.reset();
        chunk
    }

    /// Drops the rest of the file: a browser shows no answer before it has sent all.
    async fn drain(mut self) -> Result<(), Failure> {
        let mut dropped = 0;
        while dropped < MAX_DROPPED_BYTES {
            match self.chunk().await {
                Ok(Some(chunk)) => dropped += chunk.len(),
                Ok(None) => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// Begins to read a file. If the server has too much work, its page offers it again.
fn begin(visit: &Visit, upload: &Arc<Upload>, definitions: Definitions, kept: KeptMappings) {
    if let Ok(Some(job)) = visit.session.uploads.begin(upload, JobKind::Read, &upload.request_id) {
        tokio::spawn(imports::inspect(upload.clone(), job, Settings::default(), definitions, kept));
    }
}

/// The tenant's types of attributes and regions of telephone numbers.
///
/// # Errors
/// There is no such tenant: it may be misspelled.
pub async fn definitions(visit: &Visit, tenant: &str) -> Result<Definitions, Failure> {
    let request = GetTenantRequest { tenant: tenant.to_owned() };
    match visit.client(tenant).admin().get_tenant(request).await {
        Ok(answer) => Ok(polynym_import::definitions(&answer.tenant.unwrap_or_default())),
        Err(error) if error.kind() == Kind::NotFound && tenant == "default" => {
            Ok(Definitions::default())
        }
        Err(error) => Err(error.into()),
    }
}

fn broken() -> Failure {
    Failure::Form("The upload broke off: choose the file again.".to_owned())
}

fn stalled() -> Failure {
    Failure::Form("The upload stalled: choose the file again.".to_owned())
}
