//! The documents of running servers: each server writes its own with every beat, and reads those of
//! the others.

use std::time::{Duration, Instant};

use mongodb::Database;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, Uuid, doc};
use mongodb::error::Error as DriverError;
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};

use crate::client::current::Current;
use crate::client::documents::collect;
use crate::client::error::Fault;
use crate::command::run::listing;
use crate::command::write::WriteCommand;
use crate::schema::bson::{number, raw};
use crate::schema::fields::{AHEAD, EXPIRES, ID, ROUTED, SERVERS, SESSIONS, TIME};
use polynym_directory::Timestamp;

/// The time from one beat to the next.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(2);

/// The time limit of a read or write.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The id of a session.
pub type SessionId = [u8; 16];

/// The presence of this server among those of a store.
#[derive(Clone)]
pub struct Presence {
    id: Bson,
    database: Current<Database>,
    /// Whether this server is connected through routers.
    is_routed: bool,
}

/// The document of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDocument {
    /// The random id of the server.
    pub id: Bson,
    /// The time when it last wrote the document, by the database's clock.
    pub time: DateTime,
    /// The ids of its sessions.
    pub sessions: Vec<Bson>,
    /// Seconds by which its clock is ahead of the database's; zero if the two agree.
    pub ahead: i64,
    /// Whether it is connected through routers.
    pub is_routed: bool,
    /// Whether it may be the [leader](super::expiry_leader) that looks for expired users.
    pub expires: bool,
}

/// The database's clock, read between two readings of the local one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The local time before.
    pub before: Timestamp,
    /// The database's time.
    pub database: Timestamp,
    /// The local time after.
    pub after: Timestamp,
    /// `after` by the monotonic clock.
    pub at: Instant,
}

impl Reading {
    /// The database's time now.
    pub fn present(&self) -> Timestamp {
        self.database.plus(self.at.elapsed())
    }
}

impl Presence {
    /// The presence of this server, which is not written yet. `None` if the store has no
    /// collection for it, which it can do without.
    ///
    /// # Errors
    /// The server's.
    pub async fn of(
        database: &Current<Database>,
        is_routed: bool,
    ) -> Result<Option<Self>, DriverError> {
        if listing(&database.get(), SERVERS, TIMEOUT).await?.is_none() {
            return Ok(None);
        }
        let (id, database) = (uuid(Uuid::new().bytes()), database.clone());
        Ok(Some(Self { id, database, is_routed }))
    }

    /// Writes the database's time to this server's document, and adds or removes sessions. Returns
    /// whether the document exists.
    pub async fn renew(&self, added: &[SessionId], removed: &[SessionId]) -> Result<bool, Fault> {
        // This is the time of the document's shard. That of a pipeline would be the router's.
        let mut change = doc! { "$currentDate": { TIME: true } };
        if !added.is_empty() {
            change.insert("$addToSet", doc! { SESSIONS: { "$each": uuids(added) } });
        } else if !removed.is_empty() {
            change.insert("$pullAll", doc! { SESSIONS: uuids(removed) });
        }
        let renew = WriteCommand::update(SERVERS, &self.own(), &change)?;
        Ok(renew.run(&self.database.get(), TIMEOUT).await? > 0)
    }

    /// Creates this server's document, with all its sessions.
    pub async fn create(&self, sessions: &[SessionId]) -> Result<(), Fault> {
        let fields = doc! { SESSIONS: uuids(sessions), ROUTED: self.is_routed };
        let document = doc! { "$currentDate": { TIME: true }, "$set": fields };
        let create = WriteCommand::upsert(SERVERS, &self.own(), raw(&document)?)?;
        create.run(&self.database.get(), TIMEOUT).await.map(drop)
    }

    /// The documents of all servers.
    pub async fn all(&self) -> Result<Vec<ServerDocument>, Fault> {
        Ok(Self::all_in(&self.database.get()).await?)
    }

    /// The documents of all servers of the store in a database.
    pub async fn all_in(database: &Database) -> Result<Vec<ServerDocument>, DriverError> {
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let servers = database.collection::<RawDocumentBuf>(SERVERS);
        let find = servers.find(doc! {}).read_concern(ReadConcern::majority());
        let find = find.selection_criteria(primary).max_time(TIMEOUT);
        let found = collect(find.await?).await?;
        Ok(found.iter().filter_map(ServerDocument::read).collect())
    }

    /// This server's document among those of all servers.
    pub fn own_in<'s>(&self, all: &'s [ServerDocument]) -> Option<&'s ServerDocument> {
        all.iter().find(|server| self.is_own(server))
    }

    /// The database's time at this server's latest beat, from the documents of all servers.
    pub fn time_in(&self, all: &[ServerDocument]) -> Option<DateTime> {
        self.own_in(all).map(|server| server.time)
    }

    /// Whether a document is this server's.
    pub fn is_own(&self, server: &ServerDocument) -> bool {
        server.id == self.id
    }

    /// Writes the state of this server to its document: the seconds by which its clock is ahead,
    /// and whether it looks for expired users.
    pub async fn write_state(&self, ahead: i64, expires: bool) -> Result<(), Fault> {
        let state = doc! { "$set": { AHEAD: ahead, EXPIRES: expires } };
        let write = WriteCommand::update(SERVERS, &self.own(), &state)?;
        write.run(&self.database.get(), TIMEOUT).await.map(drop)
    }

    /// Deletes the document of this server, which has stopped.
    pub async fn delete_own(&self) -> Result<(), Fault> {
        let delete = WriteCommand::delete_one(SERVERS, &self.own())?;
        delete.run(&self.database.get(), TIMEOUT).await.map(drop)
    }

    /// Deletes the document of another server, unless it was renewed.
    pub async fn remove(&self, server: &ServerDocument) -> Result<(), Fault> {
        let unchanged = doc! { ID: server.id.clone(), TIME: server.time };
        let delete = WriteCommand::delete_one(SERVERS, &unchanged)?;
        delete.run(&self.database.get(), TIMEOUT).await.map(drop)
    }

    fn own(&self) -> Document {
        doc! { ID: self.id.clone() }
    }
}

impl ServerDocument {
    fn read(document: &Document) -> Option<Self> {
        let sessions = document.get_array(SESSIONS).ok().cloned().unwrap_or_default();
        let ahead = document.get(AHEAD).and_then(number).unwrap_or_default();
        Some(Self {
            id: document.get(ID)?.clone(),
            time: *document.get_datetime(TIME).ok()?,
            sessions,
            ahead,
            is_routed: document.get_bool(ROUTED).unwrap_or_default(),
            expires: document.get_bool(EXPIRES).unwrap_or_default(),
        })
    }
}

fn uuid(bytes: SessionId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
}

fn uuids(ids: &[SessionId]) -> Vec<Bson> {
    ids.iter().copied().map(uuid).collect()
}
