//! A change stream on the users: the events that each change has added to a history.

use std::collections::HashMap;
use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ResumeToken as DriverToken;
use mongodb::error::{Error as DriverError, ErrorKind};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::bson::{as_id, read_fields, required};
use crate::schema::fields::{ID, TAIL, TENANT};
use crate::schema::tail::Tail;
use polynym_directory::encoded::event::decode_event;
use polynym_directory::error::Error;
use polynym_directory::model::event::Event;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::stores::{ResumeToken, foreign_token};

/// The text of a change stream's token, in hexadecimal digits. MongoDB guarantees that later ones
/// are greater, byte by byte.
pub type StreamToken = String;

/// The time for which MongoDB waits for a change.
const MAX_AWAIT: Duration = Duration::from_secs(1);
/// The limit of users whose latest events are known.
const MAX_KNOWN_USERS: usize = 100_000;

pub struct Changes {
    stream: ChangeStream<RawDocumentBuf>,
    /// The number of the latest event of each changed user.
    last: HashMap<LocalityId, u64>,
}

impl Changes {
    /// Opens a stream of the changes after a token, or from now on.
    pub async fn open(
        collections: &Collections,
        after: Option<&StreamToken>,
    ) -> Result<Self, Error> {
        let resume = |token: &StreamToken| {
            mongodb::bson::deserialize_from_document::<DriverToken>(doc! { "_data": token })
                .map_err(|_| foreign_token())
        };
        let pipeline = [
            doc! { "$match": { "operationType": { "$in": ["insert", "replace"] } } },
            doc! { "$project": {
                "documentKey": 1,
                format!("fullDocument.{TENANT}"): 1,
                format!("fullDocument.{TAIL}"): 1,
            } },
        ];
        let watch = collections.users.watch().pipeline(pipeline).max_await_time(MAX_AWAIT);
        let stream =
            watch.resume_after(after.map(resume).transpose()?).await.map_err(failure)?.with_type();
        Ok(Self { stream, last: HashMap::new() })
    }

    /// The current token.
    pub fn token(&self) -> Result<StreamToken, Error> {
        let token = self.stream.resume_token().ok_or(Error::WatchUnsupported)?;
        token_text(&token)
    }

    /// The events of the next change with events, and its token; `None` if there is no such change
    /// within [`MAX_AWAIT`].
    pub async fn next(&mut self) -> Result<Option<(Vec<Event>, StreamToken)>, Error> {
        while let Some(change) = self.stream.next_if_any().await.map_err(failure)? {
            let [id] = read_fields(&change, [ID])?;
            let [data] = read_fields(required(ID, id, RawBsonRef::as_document)?, ["_data"])?;
            let token = required(ID, data, RawBsonRef::as_str)?.to_owned();
            let events = self.added(&change)?;
            if !events.is_empty() {
                return Ok(Some((events, token)));
            }
        }
        Ok(None)
    }

    /// The events that a change has added. If the user's previous event is not known, these are the
    /// events with the time of the last one: a mutation adds no others.
    fn added(&mut self, change: &RawDocument) -> Result<Vec<Event>, Fault> {
        let [document_key, full_document] = read_fields(change, ["documentKey", "fullDocument"])?;
        let key = required("documentKey", document_key, RawBsonRef::as_document)?;
        let user = required("fullDocument", full_document, RawBsonRef::as_document)?;
        let [stored_id] = read_fields(key, [ID])?;
        let id = required(ID, stored_id, as_id)?;
        let [tenant, stored_tail] = read_fields(user, [TENANT, TAIL])?;
        let name = required(TENANT, tenant, RawBsonRef::as_str)?;
        let tenant = Tenant::parse(name).map_err(Fault::damaged)?;
        let tail = Tail::of(stored_tail)?;
        let decoded = tail.events.iter().map(|event| decode_event(&tenant, id, event));
        let mut events: Vec<Event> = decoded.collect::<Result<_, _>>().map_err(Fault::damaged)?;

        if self.last.len() > MAX_KNOWN_USERS {
            self.last.clear();
        }
        let known = self.last.insert(id, tail.count);
        let time = events.last().map(|last| last.time);
        events.retain(|event| match known {
            Some(known) => event.sequence > known,
            None => Some(event.time) == time,
        });
        Ok(events)
    }
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
