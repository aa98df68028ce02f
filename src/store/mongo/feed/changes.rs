//! A change stream on the users: the events that each change has added to a history.

use std::collections::HashMap;
use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ResumeToken;
use mongodb::error::{Error as DriverError, ErrorKind};

use crate::directory::encoded::event::decode_event;
use crate::directory::error::Error;
use crate::directory::model::event::Event;
use crate::directory::model::tenant::Tenant;
use crate::directory::stores::foreign_token;
use crate::store::mongo::collections::Collections;
use crate::store::mongo::error::Fault;
use crate::store::mongo::schema::{ID, TAIL, TENANT, fields, needed};
use crate::store::mongo::tail::Tail;

/// The text of a resume token. Later ones are greater, byte by byte, as MongoDB says of those that
/// are written in hexadecimal digits.
pub type Token = String;

/// The time for which MongoDB waits for a change.
const AWAIT: Duration = Duration::from_secs(1);
/// The most users whose last events are known.
const KNOWN: usize = 100_000;

pub struct Changes {
    stream: ChangeStream<RawDocumentBuf>,
    /// The number of the last event of users that have changed.
    last: HashMap<LocalityId, u64>,
}

impl Changes {
    /// Opens a stream of the changes after a token, or of those from now on.
    pub async fn open(collections: &Collections, after: Option<&Token>) -> Result<Self, Error> {
        let resume = |token: &Token| {
            let token = doc! { "_data": token };
            mongodb::bson::deserialize_from_document::<ResumeToken>(token)
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
        let watch = collections.users.watch().pipeline(pipeline).max_await_time(AWAIT);
        let watch = watch.resume_after(after.map(resume).transpose()?);
        let stream = watch.await.map_err(failure)?.with_type();
        Ok(Self { stream, last: HashMap::new() })
    }

    /// The present token.
    pub fn token(&self) -> Result<Token, Error> {
        let token = self.stream.resume_token().ok_or(Error::WatchUnsupported)?;
        token_text(&token)
    }

    /// The events of the next change that has any, and its token; none if there is no such change
    /// within [`AWAIT`].
    pub async fn next(&mut self) -> Result<Option<(Vec<Event>, Token)>, Error> {
        while let Some(change) = self.stream.next_if_any().await.map_err(failure)? {
            let [token] = fields(&change, [ID])?;
            let [token] = fields(needed(ID, token, RawBsonRef::as_document)?, ["_data"])?;
            let token = needed(ID, token, RawBsonRef::as_str)?.to_owned();
            let events = self.added(&change)?;
            if !events.is_empty() {
                return Ok(Some((events, token)));
            }
        }
        Ok(None)
    }

    /// The events that a change has added. Where the last one before is not known, those of the
    /// same time as the last: a mutation adds no others.
    fn added(&mut self, change: &RawDocument) -> Result<Vec<Event>, Fault> {
        let [key, user] = fields(change, ["documentKey", "fullDocument"])?;
        let key = needed("documentKey", key, RawBsonRef::as_document)?;
        let user = needed("fullDocument", user, RawBsonRef::as_document)?;
        let [id] = fields(key, [ID])?;
        let id = needed(ID, id, RawBsonRef::as_binary)?.bytes;
        let id = LocalityId::from(<[u8; 16]>::try_from(id).map_err(Fault::damaged)?);
        let [tenant, tail] = fields(user, [TENANT, TAIL])?;
        let tenant = needed(TENANT, tenant, RawBsonRef::as_str)?;
        let tenant = Tenant::parse(tenant).map_err(Fault::damaged)?;
        let tail = Tail::of(tail)?;
        let events = tail.events.iter().map(|event| decode_event(&tenant, id, event));
        let mut events: Vec<Event> = events.collect::<Result<_, _>>().map_err(Fault::damaged)?;

        if self.last.len() > KNOWN {
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

fn token_text(token: &ResumeToken) -> Result<Token, Error> {
    let token = mongodb::bson::serialize_to_document(token).map_err(Fault::damaged)?;
    Ok(token.get_str("_data").map_err(Fault::damaged)?.to_owned())
}

/// The error of a stream.
fn failure(error: DriverError) -> Error {
    /// The server has no change streams: it is no replica set, or does not know the stage or the
    /// command.
    const UNSUPPORTED: [i32; 5] = [40_573, 40_324, 20, 59, 115];
    /// The oplog does not reach back to the token.
    const GONE: [i32; 2] = [286, 280];
    /// A text that is no token, or one of a collection that is not there.
    const FOREIGN: [i32; 3] = [260, 9, 50_811];
    match &*error.kind {
        ErrorKind::Command(failed) if UNSUPPORTED.contains(&failed.code) => Error::WatchUnsupported,
        ErrorKind::Command(failed) if GONE.contains(&failed.code) => Error::ResumeExpired,
        ErrorKind::Command(failed) if FOREIGN.contains(&failed.code) => foreign_token(),
        _ => Fault::from(error).into(),
    }
}
