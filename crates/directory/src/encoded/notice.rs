//! The content of notices, in stores and in the API's messages.

use prost::Message;

use crate::encoded::decode::read_value;
use crate::encoded::encode::{time_message, value_message};
use crate::encoded::error::WireError;
use crate::model::notice::{InboxEntry, NoticeContent};
use polynym_proto::v1;

/// The stored form of the content of a notice.
pub fn encode_content(content: &NoticeContent) -> Vec<u8> {
    message(content.clone()).encode_to_vec()
}

/// Decodes the output of [`encode_content`].
pub fn decode_content(bytes: &[u8]) -> Result<NoticeContent, WireError> {
    let message = v1::Notice::decode(bytes).map_err(|error| WireError(error.to_string()))?;
    let read = |(name, value)| Some((name, read_value(value)?));
    Ok(NoticeContent {
        sender: message.sender,
        subject: message.subject,
        body: message.body,
        attributes: message.attributes.into_iter().filter_map(read).collect(),
    })
}

/// An entry as the API's message; none if its notice was deleted.
pub fn entry_message(entry: InboxEntry) -> Option<v1::Notice> {
    let notice = entry.notice?;
    Some(v1::Notice {
        notice_id: notice.id.to_string(),
        send_time: Some(time_message(notice.send_time)),
        expire_time: notice.expire_time.map(time_message),
        read: entry.read,
        ..message(notice.content)
    })
}

fn message(content: NoticeContent) -> v1::Notice {
    let NoticeContent { sender, subject, body, attributes } = content;
    let attributes =
        attributes.into_iter().map(|(name, value)| (name, value_message(&value))).collect();
    v1::Notice { sender, subject, body, attributes, ..v1::Notice::default() }
}
