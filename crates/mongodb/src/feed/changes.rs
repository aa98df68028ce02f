//! A change stream on the users: the changes that have added events to a history.

use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ResumeToken as DriverToken;
use mongodb::error::{Error as DriverError, ErrorKind};
use tokio::time::timeout;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::bson::{as_id, read_fields, required};
use crate::schema::fields::{ID, TAIL, TENANT};
use crate::schema::tail::Tail;
use polynym_directory::{Error, ResumeToken, Tenant, stores::foreign_token};
use polynym_store_common::unreadable::report_unreadable;

/// The text of a change stream's token, in hexadecimal digits. MongoDB guarantees that later ones
/// are greater, byte by byte.
pub type StreamToken = String;

/// The time for which MongoDB waits for a change.
const MAX_AWAIT: Duration = Duration::from_secs(1);

/// A stream of changes.
pub struct Changes {
    stream: ChangeStream<RawDocumentBuf>,
    /// The timeout of a read.
    timeout: Duration,
}

/// A change of a user that has added events to its history.
pub struct Change {
    /// The user.
    pub user: LocalityId,
    /// The user's tenant. MongoDB may report a write as an update, which has only the fields that
    /// differ.
    pub tenant: Option<Tenant>,
    /// The end of the history.
    pub tail: Tail,
    /// The time of the commit.
    pub time: Timestamp,
    /// The token after the change.
    pub token: StreamToken,
}

impl Changes {
    /// Opens a stream of the changes after a token, or from now on, within the timeout of a read.
    pub async fn open(
        collections: &Collections,
        after: Option<&StreamToken>,
    ) -> Result<Self, Error> {
        let resume = |token: &StreamToken| {
            mongodb::bson::deserialize_from_document::<DriverToken>(doc! { "_data": token })
                .map_err(|_| foreign_token())
        };
        let pipeline = [
            doc! { "$match": { "operationType": { "$in": ["insert", "replace", "update"] } } },
            doc! { "$project": {
                "documentKey": 1,
                "clusterTime": 1,
                format!("fullDocument.{TENANT}"): 1,
                format!("fullDocument.{TAIL}"): 1,
                format!("updateDescription.updatedFields.{TAIL}"): 1,
            } },
        ];
        let watch = collections.users.watch().pipeline(pipeline).max_await_time(MAX_AWAIT);
        let opened = watch.resume_after(after.map(resume).transpose()?).into_future();
        // MongoDB itself has no time limit for it.
        let stream = timeout(collections.timeout, opened).await.map_err(|_| Fault::TimedOut)?;
        let stream = stream.map_err(failure)?.with_type();
        Ok(Self { stream, timeout: collections.timeout })
    }

    /// The current token.
    pub fn token(&self) -> Result<StreamToken, Error> {
        let token = self.stream.resume_token().ok_or(Error::WatchUnsupported)?;
        token_text(&token)
    }

    /// The next change that has added events; `None` if there is no such change within
    /// [`MAX_AWAIT`].
    ///
    /// # Errors
    /// [`Error::ResumeExpired`] after the collection was dropped or renamed.
    pub async fn next(&mut self) -> Result<Option<Change>, Error> {
        while let Some(change) = self.next_document().await? {
            let [id] = read_fields(&change, [ID])?;
            let [data] = read_fields(required(ID, id, RawBsonRef::as_document)?, ["_data"])?;
            let token = required(ID, data, RawBsonRef::as_str)?;
            match Change::read(&change, token) {
                Ok(change) if change.tail.has_added() => return Ok(Some(change)),
                Ok(_) => {}
                Err(fault) => report_unreadable(user_of(&change).ok(), &fault),
            }
        }
        if self.stream.is_alive() { Ok(None) } else { Err(Error::ResumeExpired) }
    }

    /// The next change, as MongoDB reports it.
    async fn next_document(&mut self) -> Result<Option<RawDocumentBuf>, Error> {
        let next = timeout(MAX_AWAIT + self.timeout, self.stream.next_if_any());
        next.await.map_err(|_| Fault::TimedOut)?.map_err(failure)
    }
}

impl Change {
    /// Whether its events are in the journal, since they are large.
    pub fn is_large(&self) -> bool {
        self.tail.added_bucket(self.user).is_some()
    }

    fn read(change: &RawDocument, token: &str) -> Result<Self, Fault> {
        let [cluster_time, full_document, update] =
            read_fields(change, ["clusterTime", "fullDocument", "updateDescription"])?;
        let (tenant, tail) = match full_document.and_then(RawBsonRef::as_document) {
            Some(user) => {
                let [tenant, tail] = read_fields(user, [TENANT, TAIL])?;
                let name = required(TENANT, tenant, RawBsonRef::as_str)?;
                (Some(Tenant::parse(name).map_err(Fault::damaged)?), tail)
            }
            None => (None, updated_tail(update)?),
        };
        Ok(Self {
            user: user_of(change)?,
            tenant,
            tail: Tail::of(tail)?,
            time: required("clusterTime", cluster_time, RawBsonRef::as_timestamp)?,
            token: token.to_owned(),
        })
    }
}

fn updated_tail(update: Option<RawBsonRef<'_>>) -> Result<Option<RawBsonRef<'_>>, Fault> {
    let Some(update) = update.and_then(RawBsonRef::as_document) else { return Ok(None) };
    let [fields] = read_fields(update, ["updatedFields"])?;
    let Some(fields) = fields.and_then(RawBsonRef::as_document) else { return Ok(None) };
    let [tail] = read_fields(fields, [TAIL])?;
    Ok(tail)
}

/// The user that a change is about.
fn user_of(change: &RawDocument) -> Result<LocalityId, Fault> {
    let [document_key] = read_fields(change, ["documentKey"])?;
    let [id] = read_fields(required("documentKey", document_key, RawBsonRef::as_document)?, [ID])?;
    required(ID, id, as_id)
}

/// Each event of a change with the position after it: for the last event, that of the change, and
/// for the others that of the change before.
pub fn with_positions<E>(events: Vec<E>, before: &str, after: &str) -> Vec<(E, ResumeToken)> {
    let count = events.len();
    let position = |n| if n + 1 == count { after } else { before }.as_bytes().to_vec();
    events.into_iter().enumerate().map(|(n, event)| (event, position(n))).collect()
}

fn token_text(token: &DriverToken) -> Result<StreamToken, Error> {
    let document = mongodb::bson::serialize_to_document(token).map_err(Fault::damaged)?;
    Ok(document.get_str("_data").map_err(Fault::damaged)?.to_owned())
}

/// The error of a stream.
fn failure(error: DriverError) -> Error {
    /// The server has no change streams: it is not a replica set, or lacks the stage or command.
    const UNSUPPORTED: [i32; 5] = [40_573, 40_324, 20, 59, 115];
    /// The oplog does not reach back to the token.
    const GONE: [i32; 2] = [286, 280];
    /// The token is malformed, or belongs to another collection.
    const FOREIGN: [i32; 3] = [260, 9, 50_811];
    match &*error.kind {
        ErrorKind::Command(failed) if UNSUPPORTED.contains(&failed.code) => Error::WatchUnsupported,
        ErrorKind::Command(failed) if GONE.contains(&failed.code) => Error::ResumeExpired,
        ErrorKind::Command(failed) if FOREIGN.contains(&failed.code) => foreign_token(),
        _ => Fault::from(error).into(),
    }
}
