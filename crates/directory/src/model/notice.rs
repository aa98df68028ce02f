//! Notices: messages to users.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::attribute::Value;
use crate::timestamp::Timestamp;

/// A message to users.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The id, the same in all inboxes.
    pub id: LocalityId,
    /// The time when it was sent.
    pub send_time: Timestamp,
    /// The time when it expires, if the sender set a time.
    pub expire_time: Option<Timestamp>,
    /// The content.
    pub content: NoticeContent,
}

impl Notice {
    /// The time in the id, or else when it was sent.
    pub fn id_time(&self) -> Timestamp {
        id_time(self.id).unwrap_or(self.send_time)
    }
}

/// The time in the id of a notice, if it has one.
fn id_time(id: LocalityId) -> Option<Timestamp> {
    let millis = id.timestamp_millis().and_then(|millis| i64::try_from(millis).ok());
    millis.map(Timestamp::from_millis)
}

/// The content of a notice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoticeContent {
    /// The name of the caller who sent it, or [`RULES`](NoticeContent::RULES).
    pub sender: String,
    /// The subject line.
    pub subject: String,
    /// The text.
    pub body: String,
    /// Further data.
    pub attributes: BTreeMap<String, Value>,
}

impl NoticeContent {
    /// The sender of notices about rules of the tenant.
    pub const RULES: &str = "polynym";
}

/// An entry of an inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxEntry {
    /// Its place among the entries of the inbox, which later ones exceed.
    pub position: u128,
    /// Whether the notice was marked as read.
    pub read: bool,
    /// The notice; none if it was deleted. Has content only if requested.
    pub notice: Option<Notice>,
}
