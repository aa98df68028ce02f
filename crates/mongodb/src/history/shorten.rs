//! A shorter retention of history: removes expired documents of a tenant's history, and gives
//! others an earlier date, at which MongoDB removes them. First the histories of users, page by
//! page, then the ended ownerships, and finally the tenant's own events. Damaged documents keep
//! their dates.

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawDocument, doc};
use mongodb::options::ReadConcern;

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::collections::Collections;
use crate::history::ended::read_row;
use crate::history::tenant_journal::{journal_ids, time_of_number};
use crate::schema::bson::{bson_id, by_id, date, id_of, id_value, key_of, read_fields};
use crate::schema::fields::{ENDED, EXPIRES_AT, ID, JOURNAL, OWNERSHIPS, TAIL, TENANT};
use crate::schema::tail::{Bucket, Tail, bucket_id};
use polynym_directory::{Shortened, Shortening, Tenant, Timestamp, encoded::event::time_of};

/// The users, ended ownerships or parts of a history of one page.
const PAGE_SIZE: usize = 500;

/// The position of a page.
enum Cursor {
    Users(Option<LocalityId>),
    /// After the ended ownerships of this key.
    Ended(String),
}

impl Cursor {
    fn read(cursor: Option<Vec<u8>>) -> Self {
        match cursor.as_deref().and_then(<[u8]>::split_first) {
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

/// The changes of a page of a history.
#[derive(Default)]
struct DatesPage {
    /// The id of the last document of the page.
    last: Option<Bson>,
    expired: Vec<Bson>,
    updates: Vec<Document>,
}

impl Collections {
    /// See [`Histories::shorten_history`](polynym_directory::stores::Histories::shorten_history).
    pub async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        cursor: Option<Vec<u8>>,
    ) -> Result<Shortened, Fault> {
        self.version_guard.versions()?;
        let (next, users) = match Cursor::read(cursor) {
            Cursor::Users(after) => {
                let (last, users) = self.shorten_users(tenant, by, after).await?;
                let next = last.map(|last| Cursor::Users(Some(last)));
                (next.or(Some(Cursor::Ended(String::new()))), users)
            }
            Cursor::Ended(after) => {
                let last = self.shorten_ended(tenant, by, &after).await?;
                if last.is_none() {
                    for id in journal_ids(tenant) {
                        self.shorten_buckets(id, by, time_of_number).await?;
                    }
                }
                (last.map(Cursor::Ended), Vec::new())
            }
        };
        Ok(Shortened { next: next.map(|next| next.encode()), users })
    }

    /// Shortens the histories of the next users. Returns the last of them, and those whose tails
    /// have expired events.
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
        let mut options = self.find_options(doc! { ID: 1 }, PAGE_SIZE);
        options.projection = Some(doc! { TAIL: 1 });
        let (mut last, mut expired) = (None, Vec::new());
        for document in self.find_documents(&self.users, filter, options).await? {
            let id = id_of(&document)?;
            last = Some(id);
            let [tail] = read_fields(&document, [TAIL])?;
            let Ok(tail) = Tail::of(tail) else { continue };
            if tail.count > tail.events.len() as u64 {
                self.shorten_buckets(id, by, newest_of_bucket).await?;
            }
            if tail.has_older(by.now.minus(by.retention)) {
                expired.push(id);
            }
        }
        Ok((last, expired))
    }

    /// Removes documents of a history, or gives them an earlier date, by the time of their newest
    /// events: page by page, so that a long history takes no more memory than one page.
    async fn shorten_buckets(
        &self,
        id: LocalityId,
        by: Shortening,
        time: fn(&RawDocument) -> Result<Timestamp, Fault>,
    ) -> Result<(), Fault> {
        let end = bucket_id(id, u64::MAX);
        let mut range = doc! { "$gte": bucket_id(id, 0), "$lte": end };
        loop {
            let page = self.read_dates(range.clone(), by, time).await?;
            // The oldest first, so that a history never has a gap.
            if !page.expired.is_empty() {
                self.execute(WriteCommand::delete(JOURNAL, &by_id(page.expired))?).await?;
            }
            self.update_many(JOURNAL, page.updates).await?;
            let Some(last) = page.last else { return Ok(()) };
            range.remove("$gte");
            range.insert("$gt", last);
        }
    }

    /// The changes of the first documents of a range of the journal, whose events are dropped one
    /// by one.
    async fn read_dates(
        &self,
        range: Document,
        by: Shortening,
        time: fn(&RawDocument) -> Result<Timestamp, Fault>,
    ) -> Result<DatesPage, Fault> {
        let options = self.find_options(doc! { ID: 1 }, PAGE_SIZE);
        let journal = self.collection(JOURNAL);
        let find = journal.find(doc! { ID: range }).with_options(options);
        let mut found = find.read_concern(ReadConcern::majority()).await?;
        let mut page = DatesPage::default();
        while let Some(document) = found.try_next().await? {
            let bucket = bson_id(&document)?;
            page.last = Some(bucket.clone());
            let Some(time) = time(&document).ok().filter(|time| by.covers(*time)) else { continue };
            let removal_time = by.removal(time);
            if removal_time <= by.now {
                page.expired.push(bucket);
                continue;
            }
            let removal = date(removal_time);
            page.updates.push(doc! {
                "q": { ID: bucket, EXPIRES_AT: { "$gt": removal.clone() } },
                "u": { "$set": { EXPIRES_AT: removal } },
            });
        }
        Ok(page)
    }

    /// Shortens the ended ownerships of the next keys. Returns the last of them.
    async fn shorten_ended(
        &self,
        tenant: &Tenant,
        by: Shortening,
        after: &str,
    ) -> Result<Option<String>, Fault> {
        // Keys begin with the tenant's name and a comma, whose next character is the hyphen.
        let (first, end) = (format!("{tenant},"), format!("{tenant}-"));
        let keys = doc! { "$gt": first.as_str().max(after), "$lt": end };
        let options = self.find_options(doc! { ID: 1 }, PAGE_SIZE);
        let ended = self.collection(ENDED);
        let (mut last, mut updates) = (None, Vec::new());
        for document in self.find_documents(&ended, doc! { ID: keys }, options).await? {
            let key = key_of(&document)?.to_owned();
            last = Some(key.clone());
            let Ok((_, owners)) = read_row(&document) else { continue };
            let newest = owners.0.iter().map(|one| one.end).max().unwrap_or_default();
            if !by.covers(newest) {
                continue;
            }
            let removal = date(by.removal(newest));
            // Unless another ownership has ended since.
            let [owners] = read_fields(&document, [OWNERSHIPS])?;
            let owners = owners.and_then(|owners| Bson::try_from(owners).ok());
            let present =
                doc! { ID: &key, OWNERSHIPS: owners, EXPIRES_AT: { "$gt": removal.clone() } };
            updates.push(doc! { "q": present, "u": { "$set": { EXPIRES_AT: removal } } });
        }
        self.update_many(ENDED, updates).await?;
        Ok(last)
    }
}

/// The time of the newest event of a user's bucket.
fn newest_of_bucket(document: &RawDocument) -> Result<Timestamp, Fault> {
    let events = Bucket::events(document)?;
    let newest = events.last().ok_or_else(|| Fault::damaged("a bucket has no events"))?;
    time_of(newest).map_err(Fault::damaged)
}
