//! The documents of inboxes: one for each notice of a user. Their ids order them by user and time,
//! and MongoDB keeps them in that order, so that a page of an inbox is one range of the disk.

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use crate::client::error::Fault;
use crate::schema::bson::{as_id, bytes, date, id_value, raw, read_fields, required};
use crate::schema::fields::{EXPIRES_AT, ID};
use polynym_directory::{
    InboxChange, InboxLimits, Notice, NoticeContent, Timestamp, encoded::notice::decode_content,
    encoded::notice::encode_content, stores::InboxEntry,
};

/// The id of the notice.
pub const NOTICE: &str = "i";
/// The time when it was sent; absent if the user deleted it.
pub const SENT: &str = "t";
/// The time when it expires, if its sender has said so.
const ENDS: &str = "e";
/// Its content; absent if the user deleted it.
pub const CONTENT: &str = "b";
/// Whether it was read.
const READ: &str = "r";

/// The id of a user's row: the user's id, and the position of the notice in 16 bytes, big-endian.
pub fn row_id(user: LocalityId, position: u128) -> Bson {
    let bytes = [*user.as_bytes(), position.to_be_bytes()].concat();
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
}

/// The filter for the rows of a user before a position, or for all.
pub fn rows_of(user: LocalityId, before: Option<u128>) -> Document {
    match before {
        Some(position) => rows_before(user, row_id(user, position)),
        None => doc! { ID: { "$gte": row_id(user, 0), "$lte": row_id(user, u128::MAX) } },
    }
}

/// The filter for the rows of a user before a row.
pub fn rows_before(user: LocalityId, row: Bson) -> Document {
    doc! { ID: { "$gte": row_id(user, 0), "$lt": row } }
}

/// The position of a notice in all inboxes: the 48 bits of the time in its id, and the other 80
/// bits of the id, which begin with a counter. `send_time` stands for the time of an id without
/// one.
pub fn position(notice: LocalityId, send_time: Timestamp) -> u128 {
    let rest = u128::from_be_bytes(*notice.as_bytes()) >> 48;
    let sent = u64::try_from(send_time.as_millis()).unwrap_or_default() & 0xffff_ffff_ffff;
    u128::from(notice.timestamp_millis().unwrap_or(sent)) << 80 | rest
}

/// The row of a notice that has just come.
pub fn new_row(
    user: LocalityId,
    notice: &Notice,
    limits: InboxLimits,
) -> Result<RawDocumentBuf, Fault> {
    let mut row = doc! {
        ID: row_id(user, position(notice.id, notice.send_time)),
        NOTICE: id_value(notice.id),
        SENT: date(notice.send_time),
        CONTENT: bytes(encode_content(&notice.content)),
        EXPIRES_AT: date(limits.expires_at(notice)),
    };
    if let Some(time) = notice.expire_time {
        row.insert(ENDS, date(time));
    }
    raw(&row)
}

/// A projection without the contents of notices.
pub fn without_content() -> Document {
    doc! { CONTENT: false }
}

/// The conditions for the rows that a change concerns, and their update.
pub fn update_of(change: &InboxChange) -> (Document, Document) {
    let unread = doc! { "$exists": false };
    match change {
        InboxChange::Read(_) => {
            (doc! { SENT: { "$exists": true }, READ: unread }, doc! { "$set": { READ: true } })
        }
        InboxChange::ReadUpTo(time) => {
            (doc! { SENT: { "$lte": date(*time) }, READ: unread }, doc! { "$set": { READ: true } })
        }
        InboxChange::Delete(_) => (
            doc! { SENT: { "$exists": true } },
            doc! { "$unset": { SENT: true, ENDS: true, CONTENT: true, READ: true } },
        ),
    }
}

/// The notices that a change names; none if it names a time.
fn named_notices(change: &InboxChange) -> Option<&[LocalityId]> {
    match change {
        InboxChange::Read(notices) => Some(notices),
        InboxChange::Delete(notice) => Some(std::slice::from_ref(notice)),
        InboxChange::ReadUpTo(_) => None,
    }
}

/// The ids of the rows that a change names, if the ids of its notices have times.
pub fn named_rows(user: LocalityId, change: &InboxChange) -> Option<Vec<Bson>> {
    let row = |notice: &LocalityId| {
        notice.timestamp_millis().map(|_| row_id(user, position(*notice, Timestamp::default())))
    };
    named_notices(change)?.iter().map(row).collect()
}

/// The filter by which the rows that a change concerns are found among others.
pub fn search_of(change: &InboxChange) -> Document {
    let (mut filter, _) = update_of(change);
    if let Some(notices) = named_notices(change) {
        let ids: Vec<_> = notices.iter().map(|id| id_value(*id)).collect();
        filter.insert(NOTICE, doc! { "$in": ids });
    }
    filter
}

/// The owner of a row, and the position of its notice.
pub fn read_id(row: &RawDocument) -> Result<(LocalityId, u128), Fault> {
    let [id] = read_fields(row, [ID])?;
    let id = required(ID, id, RawBsonRef::as_binary)?.bytes;
    let (user, position) = id.split_first_chunk().ok_or_else(|| Fault::damaged("a short id"))?;
    let position = position.try_into().map_err(Fault::damaged)?;
    Ok((LocalityId::from(*user), u128::from_be_bytes(position)))
}

/// The entry in a row.
pub fn read_entry(row: &RawDocument, with_content: bool) -> Result<InboxEntry, Fault> {
    let (_, position) = read_id(row)?;
    let [id, sent, ends, content, mark] = read_fields(row, [NOTICE, SENT, ENDS, CONTENT, READ])?;
    let read = mark.is_some();
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use locality_uuid::{Generator, Mode};

    use super::*;

    #[test]
    fn positions_are_in_the_order_of_ids() {
        let ids = Generator::new(Mode::Sequential);
        let time = Timestamp::from_millis(5);
        let positions: Vec<_> = (0..10_000).map(|_| position(ids.next_id(), time)).collect();
        assert!(positions.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_id_without_a_time_is_placed_when_it_was_sent() {
        let hash = |n: u8| LocalityId::from([n, 0, 0, 0, 0, 0, 0x80, 0, 0x80, 0, 0, 0, 0, 0, 0, 1]);
        let at = |n, millis| position(hash(n), Timestamp::from_millis(millis));
        assert!(at(9, 1_000) < at(1, 1_001));
        assert_ne!(at(1, 1_000), at(2, 1_000));
        let sent = Generator::new(Mode::Variable).next_id();
        let millis = sent.timestamp_millis().unwrap() as i64;
        let sent = position(sent, Timestamp::default());
        assert!(at(255, millis - 1) < sent && sent < at(0, millis + 1));
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let user = LocalityId::from([7; 16]);
        let notice = Notice {
            id: Generator::new(Mode::Variable).next_id(),
            send_time: Timestamp::from_millis(1_000),
            expire_time: Some(Timestamp::from_millis(2_000)),
            content: NoticeContent { subject: "Terms".to_owned(), ..NoticeContent::default() },
        };
        let limits = InboxLimits { retention: Duration::from_secs(9), count: 10 };
        let row = new_row(user, &notice, limits).unwrap();
        let place = position(notice.id, notice.send_time);
        assert_eq!(read_id(&row).unwrap(), (user, place));
        let entry = InboxEntry { position: place, read: false, notice: Some(notice) };
        assert_eq!(read_entry(&row, true).unwrap(), entry);
    }
}
