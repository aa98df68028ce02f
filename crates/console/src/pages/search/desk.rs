//! The panels of the start page: work that runs and work that ended, the latest
//! users, those who were deleted lately, and those at whom the session looked last. Each part reads
//! a bounded number of records; those of the session cost no call.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use polynym_client::Client;
use polynym_presentation::time::Time;
use v1::EventType;

use crate::imports::{JobKind, Upload};
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::audit::{Line, Lines};
use crate::views::bulk::BulkView;
use crate::views::person::{People, Person};
use crate::views::undoings::{Undoings, latest_bulk_changes};

/// The rows of a part.
const MAX_ROWS: usize = 6;
/// The latest creations that are read. Those of one operation are one row.
const CREATIONS: i32 = 50;
/// The latest deletions that are read.
const DELETIONS: i32 = 25;
/// The filter of deleted users.
pub const DELETED_FILTER: &str = "state = DELETED";

/// The panels of the start page.
#[derive(Default)]
pub struct Desk {
    /// The users at whom the session looked last, the latest first.
    pub seen: Vec<Person>,
    /// The files that the session works on.
    pub files_running: Vec<FileRow>,
    pub bulks_running: Vec<BulkView>,
    /// The operations that are undone.
    pub undoings: Undoings,
    /// The files that the session imported, and the bulk changes that ended and changed users, the
    /// latest first.
    pub ended: Vec<Ended>,
    /// The latest users, the newest first.
    pub created: Vec<Line>,
    /// The users who were deleted lately, those first who are purged first.
    pub deleted: Vec<DeletedRow>,
    /// Whether a part cannot be read.
    pub is_partial: bool,
}

/// Work that ended.
pub enum Ended {
    File(FileRow),
    Bulk(Box<BulkView>),
}

impl Ended {
    /// When it ended.
    fn time(&self) -> Option<&Time> {
        match self {
            Self::File(file) => file.ended.as_ref(),
            Self::Bulk(bulk) => bulk.ended.as_ref(),
        }
    }
}

/// A file of the session.
pub struct FileRow {
    pub number: ShortId,
    pub name: String,
    pub kind: JobKind,
    /// The share that is done, in percent.
    pub percent: u64,
    pub created: i64,
    pub restored: i64,
    pub changed: i64,
    /// The operation of the import.
    pub operation: String,
    /// When the import ended.
    pub ended: Option<Time>,
}

/// A user who will be purged.
pub struct DeletedRow {
    pub person: Person,
    pub purged: Option<Time>,
}

impl Desk {
    /// Reads all parts at once, as far as the caller may.
    pub async fn read(visit: &Visit, tenant: &str) -> Self {
        let client = visit.client(tenant);
        let seen = visit.session.seen.of_tenant(tenant, MAX_ROWS);
        let (seen, bulks, created, deleted) = tokio::join!(
            seen_people(&client, &seen),
            latest_bulk_changes(&client),
            creations(&client),
            deletions(&client),
        );
        let is_partial = bulks.is_none() || created.is_none() || deleted.is_none();
        let bulks = bulks.unwrap_or_default();
        let (running, ended): (Vec<_>, Vec<_>) = bulks.into_iter().partition(BulkView::is_running);
        let undoings = Undoings::among(running.iter().chain(&ended).cloned());
        let is_change = |bulk: &BulkView| !bulk.is_dry_run && bulk.undone.is_empty();
        let ended = ended.into_iter().filter(|bulk| is_change(bulk) && bulk.changed > 0);
        let (files_running, imported) = files(visit, tenant);
        let ended = ended.map(|bulk| Ended::Bulk(Box::new(bulk)));
        let mut ended: Vec<_> = imported.into_iter().map(Ended::File).chain(ended).collect();
        let iso = |row: &Ended| row.time().map(|time| time.iso.clone());
        ended.sort_by_key(|row| Reverse(iso(row)));
        ended.truncate(MAX_ROWS);
        Self {
            seen,
            files_running,
            bulks_running: running.into_iter().take(MAX_ROWS).collect(),
            undoings,
            ended,
            created: created.unwrap_or_default(),
            deleted: deleted.unwrap_or_default(),
            is_partial,
        }
    }

    /// Whether something runs.
    pub const fn is_running(&self) -> bool {
        !self.files_running.is_empty() || !self.bulks_running.is_empty()
    }
}

/// The people with these ids, in this order: one call for all of them. A user who is gone is left
/// out.
async fn seen_people(client: &Client, ids: &[String]) -> Vec<Person> {
    let people = People::read(client, ids.iter().map(String::as_str)).await;
    let known = ids.iter().map(|id| people.person(id));
    known.filter(|person| person.note != "no longer there").collect()
}

/// The latest users who are still there, those of one operation in a line.
async fn creations(client: &Client) -> Option<Vec<Line>> {
    let request = v1::ListEventsRequest {
        types: vec![EventType::UserCreated.into(), EventType::UserImported.into()],
        page_size: CREATIONS,
        ..Default::default()
    };
    let mut answer = client.directory().list_events(request).await.ok()?;
    let users = People::users(client, answer.events.iter().map(|event| &*event.user_id)).await?;
    let is_present =
        |user: &&v1::User| matches!(user.state(), v1::State::Active | v1::State::Disabled);
    let present: HashSet<_> = users.iter().filter(is_present).map(|user| &*user.user_id).collect();
    answer.events.retain(|event| present.contains(&*event.user_id));
    let mut lines = Lines::default();
    lines.add(&answer, true);
    Some(lines.by_operation(MAX_ROWS, answer.next_page_token.is_empty()))
}

/// The users who were deleted lately and still are, those first who are purged first.
async fn deletions(client: &Client) -> Option<Vec<DeletedRow>> {
    let request = v1::ListEventsRequest {
        types: vec![EventType::UserDeleted.into()],
        page_size: DELETIONS,
        ..Default::default()
    };
    let events = client.directory().list_events(request).await.ok()?.events;
    let ids = events.iter().map(|event| &*event.user_id);
    let mut users = People::users(client, ids).await?;
    users.retain(|user| user.state() == v1::State::Deleted);
    users.sort_by_key(|user| user.purge_time.map(|time| (time.seconds, time.nanos)));
    let row = |user: &v1::User| {
        let view = UserView::of(user);
        let name = view.title().to_owned();
        let person = Person { name, ..Person::unknown(&view.id) };
        DeletedRow { person, purged: view.purged }
    };
    Some(users.iter().take(MAX_ROWS).map(row).collect())
}

/// The files that the session works on, and those that it imported, of callers who may import.
fn files(visit: &Visit, tenant: &str) -> (Vec<FileRow>, Vec<FileRow>) {
    if visit.caller.role < Role::Admin {
        return Default::default();
    }
    let uploads = visit.session.uploads.of_tenant(tenant);
    let newest_first = || uploads.iter().rev();
    (newest_first().filter_map(running).collect(), newest_first().filter_map(imported).collect())
}

fn running(upload: &Arc<Upload>) -> Option<FileRow> {
    let job = upload.running()?;
    let progress = job.progress();
    Some(FileRow {
        number: upload.number,
        name: upload.name.clone(),
        kind: job.kind,
        percent: job.percent(),
        created: progress.created,
        restored: progress.restored,
        changed: progress.changed,
        operation: String::new(),
        ended: None,
    })
}

fn imported(upload: &Arc<Upload>) -> Option<FileRow> {
    let import = upload.snapshot().import?;
    (upload.running().is_none() && import.has_changed()).then(|| FileRow {
        number: upload.number,
        name: upload.name.clone(),
        kind: JobKind::Import,
        percent: 100,
        created: import.progress.created,
        restored: import.progress.restored,
        changed: import.progress.changed,
        operation: import.operation_id.clone(),
        ended: import.ended.and_then(|time| Time::of(Some(&time.into()))),
    })
}
