//! Notices: messages to users.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::attribute::Value;
use super::timestamp::Timestamp;

/// A message to users.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The id, the same in all inboxes.
    pub id: LocalityId,
    /// When it was sent.
    pub send_time: Timestamp,
    /// When it goes from the inboxes, if that was said.
    pub expire_time: Option<Timestamp>,
    /// The text.
    pub content: NoticeContent,
}

/// The text of a notice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoticeContent {
    /// The name of the caller who sent it, or [`RULES`](NoticeContent::RULES).
    pub sender: String,
    /// A line that says what it is about.
    pub subject: String,
    /// The text.
    pub body: String,
    /// Further data.
    pub attributes: BTreeMap<String, Value>,
}

impl NoticeContent {
    /// The sender of notices that the rules of a tenant send.
    pub const RULES: &str = "polynym";
}

/// A place in an inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxEntry {
    /// The number of the notice among all that the inbox has had: 1, 2, 3 and so on.
    pub position: u64,
    /// Whether the notice was marked as read.
    pub read: bool,
    /// The notice; none where it was deleted. Without its content where that was not asked for.
    pub notice: Option<Notice>,
}
