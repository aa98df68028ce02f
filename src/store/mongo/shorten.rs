//! A shorter retention of history: documents of a tenant's past that are over age are removed, and
//! others get an earlier date, by which MongoDB removes them. First those of its users, page by
//! page, then the ended ownerships of its identifiers, and at last its own events. Those that are
//! damaged keep their dates: they are no reason to leave the others.

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use mongodb::options::{Acknowledgment, FindOptions, ReadConcern, WriteConcern};

use super::collections::Collections;
use super::ended::read_row;
use super::error::Fault;
use super::schema::{
    ENDED, EXPIRES_AT, ID, JOURNAL, OWNERSHIPS, TAIL, TENANT, by_id, date, fields, id_of, id_value,
    key_of,
};
use super::tail::{Bucket, Tail, buckets_up_to};
use super::tenant_journal::{journal_id, time_of_number};
use crate::directory::encoded::event::time_of;
use crate::directory::model::shortening::{Shortened, Shortening};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;

/// Users, or ended ownerships, in one part.
const PAGE: i64 = 500;
/// The most documents of one statement.
const STATEMENT: usize = 1_000;

/// Where a part begins.
enum Place {
    Users(Option<LocalityId>),
    /// After the ended ownerships of this key.
    Ended(String),
}

impl Place {
    fn read(place: Option<Vec<u8>>) -> Self {
        match place.as_deref().and_then(<[u8]>::split_first) {
            Some((b'u', id)) => Self::Users(id.try_into().ok().map(<[u8; 16]>::into)),
            Some((b'e', key)) => Self::Ended(String::from_utf8_lossy(key).into_owned()),
            _ => Self::Users(None),
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Users(id) => {
                [b"u", id.map(|id| *id.as_bytes()).unwrap_or_default().as_slice()].concat()
            }
            Self::Ended(key) => [b"e", key.as_bytes()].concat(),
        }
    }
}

impl Collections {
    /// See [`Histories::shorten_history`](crate::directory::stores::Histories::shorten_history).
    pub async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Fault> {
        if !self.fence.versions()?.has_journal() {
            return Ok(Shortened::default());
        }
        let (next, users) = match Place::read(place) {
            Place::Users(after) => {
                let (last, users) = self.shorten_users(tenant, by, after).await?;
                let next = last.map(|last| Place::Users(Some(last)));
                (next.or(Some(Place::Ended(String::new()))), users)
            }
            Place::Ended(after) => {
                let last = self.shorten_ended(tenant, by, &after).await?;
                if last.is_none() {
                    self.shorten_buckets(journal_id(tenant), by, time_of_number).await?;
                }
                (last.map(Place::Ended), Vec::new())
            }
        };
        Ok(Shortened { next: next.map(|next| next.encode()), users })
    }

    /// Shortens the histories of the next users. Returns the last of them, and those whose own
    /// documents have events that are over age.
    async fn shorten_users(
        &self,
        tenant: &Tenant,
        by: Shortening,
        after: Option<LocalityId>,
    ) -> Result<(Option<LocalityId>, Vec<LocalityId>), Fault> {
        let mut filter = doc! { TENANT: tenant.as_str() };
        if let Some(after) = after {
            filter.insert(ID, doc! { "$gt": id_value(after) });
        }
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(PAGE);
        let options = options.projection(doc! { TAIL: 1 }).max_time(self.timeout).build();
        let (mut last, mut over_age) = (None, Vec::new());
        for document in self.all(&self.users, filter, options).await? {
            let id = id_of(&document)?;
            last = Some(id);
            let [tail] = fields(&document, [TAIL])?;
            let Ok(tail) = Tail::of(tail) else { continue };
            if tail.count > tail.events.len() as u64 {
                self.shorten_buckets(id, by, newest_of_bucket).await?;
            }
            if tail.has_older(by.now.minus(by.retention)) {
                over_age.push(id);
            }
        }
        Ok((last, over_age))
    }

    /// Removes documents of a history or gives them an earlier date, by the time of the newest
    /// event of each.
    async fn shorten_buckets(
        &self,
        id: LocalityId,
        by: Shortening,
        time: fn(&RawDocument) -> Result<Timestamp, Fault>,
    ) -> Result<(), Fault> {
        let journal = self.database.collection::<RawDocumentBuf>(JOURNAL);
        let find = journal.find(buckets_up_to(id, u64::MAX)).sort(doc! { ID: 1 });
        let find = find.max_time(self.timeout);
        let mut found = find.read_concern(ReadConcern::majority()).await?;
        let (mut updates, mut over) = (Vec::new(), Vec::new());
        while let Some(document) = found.try_next().await? {
            let Ok(time) = time(&document) else { continue };
            let removal = by.removal(time);
            let bucket = document.get(ID).map_err(Fault::damaged)?;
            let bucket = bucket.and_then(|id| Bson::try_from(id).ok()).unwrap_or(Bson::Null);
            if removal <= by.now {
                over.push(bucket);
                continue;
            }
            let removal = date(removal);
            updates.push(doc! {
                "q": { ID: bucket, EXPIRES_AT: { "$gt": removal.clone() } },
                "u": { "$set": { EXPIRES_AT: removal } },
            });
        }
        // The oldest first: what is left is the end of a history at any time.
        for over in over.chunks(STATEMENT) {
            journal.delete_many(by_id(over.to_vec())).write_concern(majority()).await?;
        }
        self.set_dates(JOURNAL, &updates).await
    }

    /// The same for the ended ownerships of the keys that come after one. Returns the last of them.
    async fn shorten_ended(
        &self,
        tenant: &Tenant,
        by: Shortening,
        after: &str,
    ) -> Result<Option<String>, Fault> {
        // Keys begin with the tenant's name and a comma. The next character is a minus.
        let (first, end) = (format!("{tenant},"), format!("{tenant}-"));
        let keys = doc! { "$gt": first.as_str().max(after), "$lt": end };
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(PAGE);
        let ended = self.database.collection::<RawDocumentBuf>(ENDED);
        let (mut last, mut updates) = (None, Vec::new());
        for document in self.all(&ended, doc! { ID: keys }, options.build()).await? {
            let key = key_of(&document)?.to_owned();
            last = Some(key.clone());
            let Ok((_, owners)) = read_row(&document) else { continue };
            let newest = owners.0.iter().map(|one| one.end).max().unwrap_or_default();
            let removal = date(by.removal(newest));
            // Unless an ownership has ended meanwhile.
            let [owners] = fields(&document, [OWNERSHIPS])?;
            let owners = owners.and_then(|owners| Bson::try_from(owners).ok());
            let present =
                doc! { ID: &key, OWNERSHIPS: owners, EXPIRES_AT: { "$gt": removal.clone() } };
            updates.push(doc! { "q": present, "u": { "$set": { EXPIRES_AT: removal } } });
        }
        self.set_dates(ENDED, &updates).await?;
        Ok(last)
    }

    async fn set_dates(&self, collection: &str, updates: &[Document]) -> Result<(), Fault> {
        let concern = mongodb::bson::serialize_to_bson(&majority()).map_err(Fault::damaged)?;
        for updates in updates.chunks(STATEMENT) {
            let command = doc! {
                "update": collection, "updates": updates.to_vec(), "ordered": false,
                "writeConcern": concern.clone(),
            };
            let reply = self.database.run_command(command).await?;
            if reply.contains_key("writeErrors") {
                return Err(Fault::damaged("dates that MongoDB does not take"));
            }
        }
        Ok(())
    }
}

fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
}

/// The time of the newest event of a user's bucket.
fn newest_of_bucket(document: &RawDocument) -> Result<Timestamp, Fault> {
    let events = Bucket::events(document)?;
    let newest = events.last().ok_or_else(|| Fault::damaged("a bucket without events"))?;
    time_of(newest).map_err(Fault::damaged)
}
