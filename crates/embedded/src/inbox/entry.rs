//! A row of an inbox: a notice of one user, with its content unless others share that.

use locality_uuid::LocalityId;
use prost::Message;

use crate::error::Fault;
use crate::inbox::contents::SharedContents;
use polynym_directory::{
    InboxLimits, Notice, NoticeContent, Timestamp, encoded::notice::decode_content,
    model::notice::InboxEntry, model::unknown,
};

/// A row of [`INBOX`](crate::schema::tables::INBOX).
#[derive(Clone, PartialEq, Message)]
pub struct EntryRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub notice: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub send_time: i64,
    #[prost(int64, optional, tag = "3")]
    pub expire_time: Option<i64>,
    /// None if it is shared, or if the user deleted the notice.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub content: Option<Vec<u8>>,
    #[prost(bool, tag = "5")]
    pub read: bool,
    /// The time when the row expires.
    #[prost(int64, tag = "6")]
    pub expiry: i64,
    /// Whether the content is in [`INBOX_CONTENTS`](crate::schema::tables::INBOX_CONTENTS).
    #[prost(bool, tag = "7")]
    pub is_shared: bool,
}

/// The number of the field [`EntryRecord::content`].
const CONTENT_FIELD: u32 = 4;

impl EntryRecord {
    /// The record of a row. Without its content, that is empty, and not copied.
    pub fn read(row: &[u8], with_content: bool) -> Result<Self, Fault> {
        if with_content {
            return Self::decode(row).map_err(Fault::damaged);
        }
        let (mut header, mut length, mut has_content) = (Vec::new(), 0, false);
        for field in unknown::fields(row) {
            length += field.whole.len();
            match field.tag {
                CONTENT_FIELD => has_content = true,
                _ => header.extend(field.whole),
            }
        }
        if length < row.len() {
            return Err(Fault::damaged("a notice is cut off"));
        }
        let record = Self::decode(&*header).map_err(Fault::damaged)?;
        Ok(Self { content: has_content.then(Vec::new), ..record })
    }

    /// The record of a notice that has just come. Without a content, it is shared.
    pub fn new(notice: &Notice, content: Option<Vec<u8>>, limits: InboxLimits) -> Self {
        Self {
            is_shared: content.is_none(),
            notice: notice.id.as_bytes().to_vec(),
            send_time: notice.send_time.as_millis(),
            expire_time: notice.expire_time.map(Timestamp::as_millis),
            content,
            read: false,
            expiry: limits.expires_at(notice).as_millis(),
        }
    }

    /// The id of the notice.
    pub fn id(&self) -> Result<LocalityId, Fault> {
        let id: [u8; 16] = self.notice.as_slice().try_into().map_err(Fault::damaged)?;
        Ok(id.into())
    }

    /// Marks the notice as deleted by the user.
    pub fn delete(&mut self) {
        (self.content, self.is_shared) = (None, false);
    }

    /// The entry at this position, with its content if `contents` has the shared ones.
    pub fn entry(
        self,
        position: u64,
        contents: Option<&SharedContents>,
    ) -> Result<InboxEntry, Fault> {
        let id = self.id()?;
        let content = match (self.content, contents) {
            (None, _) if !self.is_shared => None,
            (_, None) => Some(NoticeContent::default()),
            (Some(content), Some(_)) => Some(decode_content(&content).map_err(Fault::damaged)?),
            (None, Some(contents)) => Some(contents.of(id)?),
        };
        let notice = content.map(|content| Notice {
            id,
            send_time: Timestamp::from_millis(self.send_time),
            expire_time: self.expire_time.map(Timestamp::from_millis),
            content,
        });
        Ok(InboxEntry { position: position.into(), read: self.read, notice })
    }
}
