//! The documents of the servers that are up: each server writes its own with every beat, and reads
//! those of the others.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, Uuid, doc};
use mongodb::error::Error as DriverError;
use mongodb::options::{
    Acknowledgment, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Collection, Database};

use crate::directory::model::timestamp::Timestamp;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::schema::bson::number;
use crate::store::mongo::schema::fields::{AHEAD, ID, SERVERS, SESSIONS, TIME};

/// The time from one beat to the next.
pub const PERIOD: Duration = Duration::from_secs(2);

/// The id of a session.
pub type SessionId = [u8; 16];

/// The presence of this server among those of a store.
#[derive(Clone)]
pub struct Presence {
    id: Bson,
    servers: Collection<Document>,
}

/// The document of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDocument {
    /// The random id of the server.
    pub id: Bson,
    /// When it last wrote this, by the database's clock.
    pub time: DateTime,
    /// The ids of its sessions.
    pub sessions: Vec<Bson>,
    /// Seconds by which its own clock is ahead of the database's; zero where the two agree.
    pub ahead: i64,
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
    /// The same moment by the monotonic clock.
    pub at: Instant,
}

impl Reading {
    /// The database's time now.
    pub fn present(&self) -> Timestamp {
        self.database.plus(self.at.elapsed())
    }
}

impl Presence {
    /// The presence of this server, which is not written yet. None where the store has no
    /// collection for it: an older program made it, and nothing is created in it.
    ///
    /// # Errors
    /// What the server says.
    pub async fn of(database: &Database) -> Result<Option<Self>, DriverError> {
        if database.list_collection_names().filter(doc! { "name": SERVERS }).await?.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { id: uuid(Uuid::new().bytes()), servers: database.collection(SERVERS) }))
    }

    /// Writes the database's time to this server's document, adds sessions to it and takes others
    /// from it. Says whether it was there.
    pub async fn renew(&self, added: &[SessionId], removed: &[SessionId]) -> Result<bool, Fault> {
        // The time is that of the shard which has the document. A pipeline's would be the router's.
        let mut change = doc! { "$currentDate": { TIME: true } };
        if !added.is_empty() {
            change.insert("$addToSet", doc! { SESSIONS: { "$each": uuids(added) } });
        } else if !removed.is_empty() {
            change.insert("$pullAll", doc! { SESSIONS: uuids(removed) });
        }
        let renewed = self.servers.update_one(self.own(), change).write_concern(majority()).await?;
        Ok(renewed.matched_count > 0)
    }

    /// Writes this server's document anew, with all its sessions.
    pub async fn enter(&self, sessions: &[SessionId]) -> Result<(), Fault> {
        let whole = doc! { "$currentDate": { TIME: true }, "$set": { SESSIONS: uuids(sessions) } };
        self.servers.update_one(self.own(), whole).upsert(true).write_concern(majority()).await?;
        Ok(())
    }

    /// The documents of all servers, as a majority has them.
    pub async fn all(&self) -> Result<Vec<ServerDocument>, Fault> {
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let find = self.servers.find(doc! {}).read_concern(ReadConcern::majority());
        let found: Vec<Document> = find.selection_criteria(primary).await?.try_collect().await?;
        Ok(found.iter().filter_map(ServerDocument::read).collect())
    }

    /// This server's document among those of all servers.
    pub fn own_in<'s>(&self, all: &'s [ServerDocument]) -> Option<&'s ServerDocument> {
        all.iter().find(|server| self.is_own(server))
    }

    /// The database's time among the documents of all servers, which is as of this server's last
    /// beat.
    pub fn time_in(&self, all: &[ServerDocument]) -> Option<DateTime> {
        self.own_in(all).map(|server| server.time)
    }

    /// Whether a document is this server's.
    pub fn is_own(&self, server: &ServerDocument) -> bool {
        server.id == self.id
    }

    /// Notes in this server's document by how many seconds its clock is ahead.
    pub async fn note_clock(&self, ahead: i64) -> Result<(), Fault> {
        self.servers.update_one(self.own(), doc! { "$set": { AHEAD: ahead } }).await?;
        Ok(())
    }

    /// Deletes this server's document: it has stopped.
    pub async fn leave(&self) -> Result<(), Fault> {
        self.servers.delete_one(self.own()).write_concern(majority()).await?;
        Ok(())
    }

    /// Deletes the document of another server, unless that has renewed it.
    pub async fn remove(&self, server: &ServerDocument) -> Result<(), Fault> {
        let as_seen = doc! { ID: server.id.clone(), TIME: server.time };
        self.servers.delete_one(as_seen).write_concern(majority()).await?;
        Ok(())
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
        })
    }
}

fn uuid(bytes: SessionId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
}

fn uuids(ids: &[SessionId]) -> Vec<Bson> {
    ids.iter().copied().map(uuid).collect()
}

fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
}
