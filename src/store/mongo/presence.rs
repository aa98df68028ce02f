//! The documents of the servers that are up: each server writes its own with every beat, and reads those of the others.

use futures_util::TryStreamExt;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, Uuid, doc};
use mongodb::error::Error as DriverError;
use mongodb::options::{Acknowledgment, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern};
use mongodb::{Collection, Database};

use super::error::Fault;
use super::schema::{ID, SERVERS, TIME};
use crate::directory::Timestamp;

/// The presence of this server among those of a store.
pub struct Presence {
    id: Bson,
    servers: Collection<Document>,
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
}

impl Presence {
    /// The presence of this server, which is not written yet. None where the store has no collection for it: an
    /// older program made it, and nothing is created in it.
    ///
    /// # Errors
    /// What the server says.
    pub async fn of(database: &Database) -> Result<Option<Self>, DriverError> {
        if database.list_collection_names().filter(doc! { "name": SERVERS }).await?.is_empty() {
            return Ok(None);
        }
        let id = Binary { subtype: BinarySubtype::Uuid, bytes: Uuid::new().bytes().to_vec() };
        let (id, servers) = (Bson::Binary(id), database.collection(SERVERS));
        Ok(Some(Self { id, servers }))
    }

    /// Writes this server's document with the database's time, and reads that time.
    pub async fn renew(&mut self) -> Result<Reading, Fault> {
        let before = Timestamp::now();
        // The time is that of the shard which has the document. A pipeline's would be the router's.
        let renewal = doc! { "$currentDate": { TIME: true } };
        let update = self.servers.update_one(self.own(), renewal).upsert(true);
        update.write_concern(majority()).await?;
        let after = Timestamp::now();
        let own = self.all().await?.into_iter().find(|server| server.get(ID) == Some(&self.id));
        let time = own.and_then(|own| own.get_datetime(TIME).ok().copied());
        let time = time.ok_or_else(|| Fault::damaged("a server's document without its time"))?;
        Ok(Reading { before, database: Timestamp::from_millis(time.timestamp_millis()), after })
    }

    /// The documents of all servers, as a majority has them.
    async fn all(&self) -> Result<Vec<Document>, Fault> {
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let find = self.servers.find(doc! {}).read_concern(ReadConcern::majority());
        Ok(find.selection_criteria(primary).await?.try_collect().await?)
    }

    /// Deletes this server's document: it has stopped.
    pub async fn end(&self) -> Result<(), Fault> {
        self.servers.delete_one(self.own()).write_concern(majority()).await?;
        Ok(())
    }

    fn own(&self) -> Document {
        doc! { ID: self.id.clone() }
    }
}

fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
}
