//! The documents of inboxes.

use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, doc};

use super::error::Fault;
use super::schema::{EXPIRES_AT, ID, as_id, bytes, date, fields, id_value, needed};
use super::tail::bucket_id;
use crate::directory::encoded::notice::{decode_content, encode_content};
use crate::directory::model::notice::{Notice, NoticeContent};
use crate::directory::model::timestamp::Timestamp;
use crate::directory::stores::{InboxChange, InboxEntry, InboxLimits};

/// Of a bucket: its notices, in the order in which they came.
pub const NOTICES: &str = "m";
/// Of a bucket: the position of its first notice.
pub const FIRST: &str = "f";
/// Of a bucket: the number of its notices.
pub const COUNT: &str = "n";
/// Of a bucket: the bytes of their contents.
pub const SIZE: &str = "z";
/// Of the open bucket: the ids of the notices of the bucket before it, and of young ones before
/// that.
pub const RECENT: &str = "l";
/// Of the open bucket: that its user was removed.
pub const GONE: &str = "g";
/// Of a notice: its id.
pub const NOTICE: &str = "i";
/// Of a notice: when it was sent.
const SENT: &str = "t";
/// Of a notice: when it goes, if that was said.
const ENDS: &str = "e";
/// Of a notice: its content; absent where it was deleted.
const CONTENT: &str = "b";
/// Of a notice: that it was read.
const READ: &str = "r";

/// The bytes after which a bucket takes no more notices.
const MOST_BYTES: i64 = 128 << 10;
/// For how long ids of notices are remembered that are in none of the last two buckets, and how
/// many: one that is sent twice within that time is there once.
const REMEMBERED: Duration = Duration::from_secs(60);
const MOST_REMEMBERED: usize = 1_000;
/// For how long an inbox refuses notices once its user was removed.
const REFUSAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The id of the open bucket of a user.
pub fn open(user: LocalityId) -> Bson {
    bucket_id(user, u64::MAX)
}

/// The ids of all buckets of a user.
pub fn all(user: LocalityId) -> Document {
    doc! { "$gte": bucket_id(user, 0), "$lte": open(user) }
}

/// The filter for the buckets of a user that begin before a position, and for the open one where
/// that is wanted.
pub fn buckets_before(user: LocalityId, position: u64, with_open: bool) -> Document {
    let earlier = doc! { ID: { "$gte": bucket_id(user, 0), "$lt": bucket_id(user, position) } };
    match (with_open, position) {
        (false, _) => earlier,
        (true, u64::MAX) => doc! { ID: all(user) },
        (true, _) => doc! { "$or": [{ ID: open(user) }, earlier] },
    }
}

/// A projection without the contents of notices.
pub fn content_left_out() -> Document {
    doc! { format!("{NOTICES}.{CONTENT}"): false, RECENT: false }
}

/// The update that adds a notice to an open bucket.
pub fn addition(notice: &Notice, limits: InboxLimits) -> Document {
    let entry = entry_document(notice);
    doc! {
        "$inc": { COUNT: 1_i64, SIZE: size(&entry) },
        "$max": { EXPIRES_AT: date(limits.expires_at(notice)) },
        "$push": { NOTICES: entry },
    }
}

/// The statement that adds a notice to an open bucket that has room and does not have it, or makes
/// the bucket.
pub fn push(user: LocalityId, notice: &Notice, limits: InboxLimits) -> Document {
    let id = id_value(notice.id);
    let filter = doc! {
        ID: open(user),
        format!("{NOTICES}.{NOTICE}"): { "$ne": &id },
        RECENT: { "$ne": &id },
        COUNT: { "$lt": OpenBucket::MOST as i64 },
        SIZE: { "$lt": MOST_BYTES },
    };
    let mut change = addition(notice, limits);
    change.insert("$setOnInsert", doc! { FIRST: 1_i64 });
    doc! { "q": filter, "u": change, "upsert": true }
}

/// The document in the place of the open bucket of a user that was removed.
pub fn refusal(user: LocalityId, now: Timestamp) -> Document {
    doc! {
        ID: open(user),
        FIRST: 1_i64,
        COUNT: OpenBucket::MOST as i64,
        SIZE: MOST_BYTES,
        NOTICES: [],
        EXPIRES_AT: date(now.plus(REFUSAL)),
        GONE: true,
    }
}

/// The statement that makes a change of an inbox, and the filter for buckets that it has missed.
pub fn update_of(user: LocalityId, change: &InboxChange) -> (Document, Document) {
    let is_there = |name: &str| (name.to_owned(), doc! { "$exists": true }.into());
    let is_new = |name: &str| (name.to_owned(), doc! { "$exists": false }.into());
    let ids = |ids: &[LocalityId]| -> Bson {
        doc! { "$in": ids.iter().map(|id| id_value(*id)).collect::<Vec<_>>() }.into()
    };
    let (of, set): ((String, Bson), Document) = match change {
        InboxChange::Read(notices) => {
            ((NOTICE.to_owned(), ids(notices)), doc! { format!("{NOTICES}.$[e].{READ}"): true })
        }
        InboxChange::ReadUpTo(time) => (
            (SENT.to_owned(), doc! { "$lte": date(*time) }.into()),
            doc! { format!("{NOTICES}.$[e].{READ}"): true },
        ),
        InboxChange::Delete(notice) => (
            (NOTICE.to_owned(), ids(&[*notice])),
            doc! { format!("{NOTICES}.$[e]"): { NOTICE: id_value(*notice) } },
        ),
    };
    let mut element: Document = [of, is_there(CONTENT)].into_iter().collect();
    if !matches!(change, InboxChange::Delete(_)) {
        element.extend([is_new(READ)]);
    }
    let named = element.iter().map(|(name, value)| (format!("e.{name}"), value.clone()));
    let named: Document = named.collect();
    let filter = doc! { ID: all(user), NOTICES: { "$elemMatch": element } };
    let update = doc! {
        "q": filter.clone(), "u": { "$set": set }, "multi": true, "arrayFilters": [named],
    };
    (update, filter)
}

fn entry_document(notice: &Notice) -> Document {
    let mut entry = doc! {
        NOTICE: id_value(notice.id),
        SENT: date(notice.send_time),
        CONTENT: bytes(encode_content(&notice.content)),
    };
    if let Some(time) = notice.expire_time {
        entry.insert(ENDS, date(time));
    }
    entry
}

/// A bucket as it is read.
pub struct Bucket<'d> {
    pub first: u64,
    count: u64,
    notices: Vec<&'d RawDocument>,
}

impl<'d> Bucket<'d> {
    pub fn read(document: &'d RawDocument) -> Result<Self, Fault> {
        let [first, count, notices] = fields(document, [FIRST, COUNT, NOTICES])?;
        let notices = needed(NOTICES, notices, RawBsonRef::as_array)?.into_iter();
        let notice = |notice: Result<RawBsonRef<'d>, _>| {
            needed(NOTICES, Some(notice.map_err(Fault::damaged)?), RawBsonRef::as_document)
        };
        Ok(Self {
            first: whole(FIRST, first)?,
            count: whole(COUNT, count)?,
            notices: notices.map(notice).collect::<Result<_, _>>()?,
        })
    }

    /// The position of its last notice.
    pub const fn last(&self) -> u64 {
        self.first + self.count - 1
    }

    /// Adds its entries before a position, the latest first, until there are `limit`.
    pub fn add_to(
        &self,
        entries: &mut Vec<InboxEntry>,
        before: u64,
        limit: usize,
        with_content: bool,
    ) -> Result<(), Fault> {
        for (n, notice) in self.notices.iter().enumerate().rev() {
            let position = self.first + n as u64;
            if position < before && entries.len() < limit {
                entries.push(read_entry(position, notice, with_content)?);
            }
        }
        Ok(())
    }
}

fn read_entry(position: u64, entry: &RawDocument, with_content: bool) -> Result<InboxEntry, Fault> {
    let [id, sent, ends, content, read] = fields(entry, [NOTICE, SENT, ENDS, CONTENT, READ])?;
    let read = read.is_some();
    // One that was deleted has nothing but its id.
    let Some(sent) = sent.and_then(RawBsonRef::as_datetime) else {
        return Ok(InboxEntry { position, read, notice: None });
    };
    let content = match with_content {
        true => decode_content(needed(CONTENT, content, RawBsonRef::as_binary)?.bytes),
        false => Ok(NoticeContent::default()),
    };
    let ends = ends.and_then(RawBsonRef::as_datetime);
    let notice = Notice {
        id: needed(NOTICE, id, as_id)?,
        send_time: Timestamp::from_millis(sent.timestamp_millis()),
        expire_time: ends.map(|time| Timestamp::from_millis(time.timestamp_millis())),
        content: content.map_err(Fault::damaged)?,
    };
    Ok(InboxEntry { position, read, notice: Some(notice) })
}

fn whole(name: &str, value: Option<RawBsonRef<'_>>) -> Result<u64, Fault> {
    u64::try_from(needed(name, value, RawBsonRef::as_i64)?).map_err(Fault::damaged)
}

/// The open bucket of a user inside a transaction.
pub struct OpenBucket {
    pub first: u64,
    count: u64,
    size: i64,
    pub is_gone: bool,
    ids: Vec<LocalityId>,
    document: Document,
}

impl OpenBucket {
    /// The most notices of a bucket.
    pub const MOST: u64 = 50;

    /// The document of the first notice of an inbox.
    pub fn first(user: LocalityId, notice: &Notice, limits: InboxLimits) -> Document {
        begun(user, 1, notice, limits)
    }

    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let [first, count, size, gone, notices, recent] =
            fields(document, [FIRST, COUNT, SIZE, GONE, NOTICES, RECENT])?;
        let mut ids = Vec::new();
        for entry in needed(NOTICES, notices, RawBsonRef::as_array)? {
            let entry = needed(NOTICES, entry.ok(), RawBsonRef::as_document)?;
            let [id] = fields(entry, [NOTICE])?;
            ids.push(needed(NOTICE, id, as_id)?);
        }
        for id in recent.and_then(RawBsonRef::as_array).into_iter().flatten() {
            ids.push(needed(RECENT, id.ok(), as_id)?);
        }
        Ok(Self {
            first: whole(FIRST, first)?,
            count: whole(COUNT, count)?,
            size: needed(SIZE, size, RawBsonRef::as_i64)?,
            is_gone: gone.is_some(),
            ids,
            document: Document::try_from(document).map_err(Fault::damaged)?,
        })
    }

    /// Whether the inbox has, or had a short time ago, this notice.
    pub fn has(&self, notice: LocalityId) -> bool {
        self.ids.contains(&notice)
    }

    /// Whether it takes one more notice.
    pub const fn has_room(&self) -> bool {
        self.count < Self::MOST && self.size < MOST_BYTES
    }

    /// The position of the first notice after it.
    pub const fn next_position(&self) -> u64 {
        self.first + self.count
    }

    /// The document of the bucket that it becomes.
    pub fn closed(&self, user: LocalityId) -> Document {
        let mut closed = self.document.clone();
        closed.remove(RECENT);
        closed.insert(ID, bucket_id(user, self.first));
        closed
    }

    /// The open bucket after it, which begins with this notice. It is kept for at least as long.
    pub fn next(&self, user: LocalityId, notice: &Notice, limits: InboxLimits) -> Document {
        let mut next = begun(user, self.next_position(), notice, limits);
        let expiry =
            next.get_datetime(EXPIRES_AT).ok().max(self.document.get_datetime(EXPIRES_AT).ok());
        next.insert(EXPIRES_AT, expiry.copied());
        let youngest = notice.send_time.minus(REMEMBERED);
        let (own, before) = self.ids.split_at(self.ids.len().min(self.count as usize));
        let is_young = |id: &&LocalityId| {
            let time = id.timestamp_millis().and_then(|millis| i64::try_from(millis).ok());
            time.is_some_and(|time| Timestamp::from_millis(time) > youngest)
        };
        let ids = own.iter().chain(before.iter().filter(is_young)).take(MOST_REMEMBERED);
        next.insert(RECENT, ids.map(|id| id_value(*id)).collect::<Vec<_>>());
        next
    }
}

/// The document of an open bucket with one notice.
fn begun(user: LocalityId, first: u64, notice: &Notice, limits: InboxLimits) -> Document {
    let entry = entry_document(notice);
    doc! {
        ID: open(user),
        FIRST: first as i64,
        COUNT: 1_i64,
        SIZE: size(&entry),
        EXPIRES_AT: date(limits.expires_at(notice)),
        NOTICES: [entry],
    }
}

/// The bytes of the content of a notice.
fn size(entry: &Document) -> i64 {
    entry.get_binary_generic(CONTENT).map_or(0, Vec::len) as i64
}
