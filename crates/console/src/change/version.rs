//! The version of a user that the person saw, in the hidden fields of a form, and what changed
//! since.

use polynym_client::Client;
use polynym_presentation::time;
use polynym_proto::v1;
use prost_types::Timestamp;

use crate::form::Form;
use crate::views::event::{self, EventView};
use crate::views::person::People;

/// The maximum number of changes that are shown.
const MAX_CHANGES: i32 = 10;

/// The version of a user that a form is about.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// The etag; empty if the form is about nobody.
    pub etag: String,
    /// The time when the user had last changed, in RFC 3339.
    pub time: String,
}

impl Version {
    /// The version of a user.
    pub fn of(user: &v1::User) -> Self {
        Self { etag: user.etag.clone(), time: time::text(user.update_time.as_ref()) }
    }

    /// The version in a form, in its fields `etag` and `seen` with this ending.
    pub fn from_form(form: &Form, ending: &str) -> Self {
        let field = |name: &str| form.get(&format!("{name}{ending}")).to_owned();
        Self { etag: field("etag"), time: field("seen") }
    }

    /// The latest changes of a user after this version, the newest first. None if the history is
    /// off: then the form says only that something changed.
    pub async fn changes_since(&self, client: &Client, id: &str) -> Vec<EventView> {
        let Ok(seen) = self.time.parse() else { return Vec::new() };
        let request = v1::ListHistoryRequest {
            user: Some(v1::list_history_request::User::UserId(id.to_owned())),
            from: Some(one_millisecond_after(seen)),
            page_size: MAX_CHANGES,
            ..Default::default()
        };
        let page = client.directory().list_history(request).await.unwrap_or_default();
        let people = People::read(client, event::user_ids(&page.events)).await;
        event::views(&page.events, &people)
    }
}

/// Two changes of a user are at least a millisecond apart.
fn one_millisecond_after(time: Timestamp) -> Timestamp {
    let nanos = time.nanos + 1_000_000;
    Timestamp {
        seconds: time.seconds + i64::from(nanos / 1_000_000_000),
        nanos: nanos % 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_begin_a_millisecond_later() {
        let end = Timestamp { seconds: 1, nanos: 999_500_000 };
        assert_eq!(one_millisecond_after(end), Timestamp { seconds: 2, nanos: 500_000 });
    }
}
