//! The documents of inboxes.

use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::schema::bson::{as_id, bytes, date, id_value, read_fields, required};
use crate::schema::fields::{EXPIRES_AT, ID};
use crate::schema::tail::bucket_id;
use polynym_directory::encoded::notice::{decode_content, encode_content};
use polynym_directory::model::notice::{Notice, NoticeContent};
use polynym_directory::stores::{InboxChange, InboxEntry, InboxLimits};
use polynym_directory::timestamp::Timestamp;

/// Of a bucket: its notices, in order of arrival.
pub const NOTICES: &str = "m";
/// Of a bucket: the position of its first notice.
pub const FIRST: &str = "f";
/// Of a bucket: the number of its notices.
pub const COUNT: &str = "n";
/// Of a bucket: the bytes of their contents.
pub const SIZE: &str = "z";
/// Of the open bucket: the ids of the notices of the previous bucket, and of recent ones before.
pub const RECENT: &str = "l";
/// Of the open bucket: whether its user was removed.
pub const GONE: &str = "g";
/// Of a notice: its id.
pub const NOTICE: &str = "i";
/// Of a notice: when it was sent.
const SENT: &str = "t";
/// Of a notice: when it expires, if it does.
const ENDS: &str = "e";
/// Of a notice: its content; absent if it was deleted.
const CONTENT: &str = "b";
/// Of a notice: whether it was read.
const READ: &str = "r";

/// The bytes at which a bucket is full.
const MAX_BYTES: i64 = 128 << 10;
/// The time for which, and the number up to which, the open bucket has ids of notices before the
/// last two buckets: a notice that is sent twice within that time is delivered once.
const ID_MEMORY: Duration = Duration::from_secs(60);
const MAX_REMEMBERED_IDS: usize = 1_000;
/// The time for which an inbox refuses notices after its user was removed.
const REFUSAL_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The id of the open bucket of a user.
pub fn open(user: LocalityId) -> Bson {
    bucket_id(user, u64::MAX)
}

/// The ids of all buckets of a user.
pub fn all(user: LocalityId) -> Document {
    doc! { "$gte": bucket_id(user, 0), "$lte": open(user) }
}

/// The filter for the buckets of a user that begin before a position, with or without the open one.
pub fn buckets_before(user: LocalityId, position: u64, with_open: bool) -> Document {
    let earlier = doc! { ID: { "$gte": bucket_id(user, 0), "$lt": bucket_id(user, position) } };
    match (with_open, position) {
        (false, _) => earlier,
        (true, u64::MAX) => doc! { ID: all(user) },
        (true, _) => doc! { "$or": [{ ID: open(user) }, earlier] },
    }
}

/// A projection without the contents of notices.
pub fn without_content() -> Document {
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

/// The statement that adds a notice to an open bucket that is not full and does not have it, or
/// creates the bucket.
pub fn push(user: LocalityId, notice: &Notice, limits: InboxLimits) -> Document {
    let id = id_value(notice.id);
    let filter = doc! {
        ID: open(user),
        format!("{NOTICES}.{NOTICE}"): { "$ne": &id },
        RECENT: { "$ne": &id },
        COUNT: { "$lt": OpenBucket::MAX_NOTICES as i64 },
        SIZE: { "$lt": MAX_BYTES },
    };
    let mut change = addition(notice, limits);
    change.insert("$setOnInsert", doc! { FIRST: 1_i64 });
    doc! { "q": filter, "u": change, "upsert": true }
}

/// The document that replaces the open bucket of a removed user.
pub fn refusal(user: LocalityId, now: Timestamp) -> Document {
    doc! {
        ID: open(user),
        FIRST: 1_i64,
        COUNT: OpenBucket::MAX_NOTICES as i64,
        SIZE: MAX_BYTES,
        NOTICES: [],
        EXPIRES_AT: date(now.plus(REFUSAL_TIME)),
        GONE: true,
    }
}

/// The statement that changes an inbox, and the filter for buckets that it has missed.
pub fn update_of(user: LocalityId, change: &InboxChange) -> (Document, Document) {
    let exists = |name: &str| (name.to_owned(), doc! { "$exists": true }.into());
    let is_absent = |name: &str| (name.to_owned(), doc! { "$exists": false }.into());
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
    let mut element: Document = [of, exists(CONTENT)].into_iter().collect();
    if !matches!(change, InboxChange::Delete(_)) {
        element.extend([is_absent(READ)]);
    }
    let named: Document =
        element.iter().map(|(name, value)| (format!("e.{name}"), value.clone())).collect();
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

/// A bucket, as stored.
pub struct Bucket<'d> {
    pub first: u64,
    count: u64,
    notices: Vec<&'d RawDocument>,
}

impl<'d> Bucket<'d> {
    pub fn read(document: &'d RawDocument) -> Result<Self, Fault> {
        let [first, count, array] = read_fields(document, [FIRST, COUNT, NOTICES])?;
        let notices = required(NOTICES, array, RawBsonRef::as_array)?.into_iter();
        let notice = |notice: Result<RawBsonRef<'d>, _>| {
            required(NOTICES, Some(notice.map_err(Fault::damaged)?), RawBsonRef::as_document)
        };
        Ok(Self {
            first: unsigned(FIRST, first)?,
            count: unsigned(COUNT, count)?,
            notices: notices.map(notice).collect::<Result<_, _>>()?,
        })
    }

    /// The position of its last notice.
    pub const fn last(&self) -> u64 {
        self.first + self.count - 1
    }

    /// Adds its entries before a position, the latest first, up to `limit`.
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
    let [id, sent, ends, content, mark] = read_fields(entry, [NOTICE, SENT, ENDS, CONTENT, READ])?;
    let read = mark.is_some();
    // A deleted notice has only its id.
    let Some(sent) = sent.and_then(RawBsonRef::as_datetime) else {
        return Ok(InboxEntry { position, read, notice: None });
    };
    let decoded = match with_content {
        true => decode_content(required(CONTENT, content, RawBsonRef::as_binary)?.bytes),
        false => Ok(NoticeContent::default()),
    };
    let expiry = ends.and_then(RawBsonRef::as_datetime);
    let notice = Notice {
        id: required(NOTICE, id, as_id)?,
        send_time: Timestamp::from_millis(sent.timestamp_millis()),
        expire_time: expiry.map(|time| Timestamp::from_millis(time.timestamp_millis())),
        content: decoded.map_err(Fault::damaged)?,
    };
    Ok(InboxEntry { position, read, notice: Some(notice) })
}

fn unsigned(name: &str, value: Option<RawBsonRef<'_>>) -> Result<u64, Fault> {
    u64::try_from(required(name, value, RawBsonRef::as_i64)?).map_err(Fault::damaged)
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
    /// The limit of notices in a bucket.
    pub const MAX_NOTICES: u64 = 50;

    /// The document of the first notice of an inbox.
    pub fn first(user: LocalityId, notice: &Notice, limits: InboxLimits) -> Document {
        with_notice(user, 1, notice, limits)
    }

    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let [first, count, size, gone, notices, recent] =
            read_fields(document, [FIRST, COUNT, SIZE, GONE, NOTICES, RECENT])?;
        let mut ids = Vec::new();
        for element in required(NOTICES, notices, RawBsonRef::as_array)? {
            let entry = required(NOTICES, element.ok(), RawBsonRef::as_document)?;
            let [id] = read_fields(entry, [NOTICE])?;
            ids.push(required(NOTICE, id, as_id)?);
        }
        for id in recent.and_then(RawBsonRef::as_array).into_iter().flatten() {
            ids.push(required(RECENT, id.ok(), as_id)?);
        }
        Ok(Self {
            first: unsigned(FIRST, first)?,
            count: unsigned(COUNT, count)?,
            size: required(SIZE, size, RawBsonRef::as_i64)?,
            is_gone: gone.is_some(),
            ids,
            document: Document::try_from(document).map_err(Fault::damaged)?,
        })
    }

    /// Whether the inbox has this notice, or had it recently.
    pub fn has(&self, notice: LocalityId) -> bool {
        self.ids.contains(&notice)
    }

    /// Whether it can take another notice.
    pub const fn has_room(&self) -> bool {
        self.count < Self::MAX_NOTICES && self.size < MAX_BYTES
    }

    /// The position of the first notice after it.
    pub const fn next_position(&self) -> u64 {
        self.first + self.count
    }

    /// The document of the closed bucket that it becomes.
    pub fn closed(&self, user: LocalityId) -> Document {
        let mut closed = self.document.clone();
        closed.remove(RECENT);
        closed.insert(ID, bucket_id(user, self.first));
        closed
    }

    /// The next open bucket, which begins with this notice and expires no earlier.
    pub fn next(&self, user: LocalityId, notice: &Notice, limits: InboxLimits) -> Document {
        let mut next = with_notice(user, self.next_position(), notice, limits);
        let expiry =
            next.get_datetime(EXPIRES_AT).ok().max(self.document.get_datetime(EXPIRES_AT).ok());
        next.insert(EXPIRES_AT, expiry.copied());
        let recent_since = notice.send_time.minus(ID_MEMORY);
        let (own, before) = self.ids.split_at(self.ids.len().min(self.count as usize));
        let is_recent = |id: &&LocalityId| {
            let time = id.timestamp_millis().and_then(|millis| i64::try_from(millis).ok());
            time.is_some_and(|time| Timestamp::from_millis(time) > recent_since)
        };
        let ids = own.iter().chain(before.iter().filter(is_recent)).take(MAX_REMEMBERED_IDS);
        next.insert(RECENT, ids.map(|id| id_value(*id)).collect::<Vec<_>>());
        next
    }
}

/// The document of an open bucket with one notice.
fn with_notice(user: LocalityId, first: u64, notice: &Notice, limits: InboxLimits) -> Document {
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
