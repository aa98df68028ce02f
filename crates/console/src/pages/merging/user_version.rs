//! What the person saw of a user, in the hidden fields of a form, and what changed since.

use polynym_client::Client;
use polynym_presentation::time;
use polynym_proto::v1;
use prost_types::Timestamp;

use crate::form::Form;
use crate::views::event::{self, EventView};

/// The changes that are shown.
const MAX_CHANGES: i32 = 10;

/// The version of a user that a form is about.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The etag.
    pub etag: String,
    /// The time when the user had last changed: RFC 3339.
    pub time: String,
}

impl Seen {
    /// The version of a user.
    pub fn of(user: &v1::User) -> Self {
        let time = time::text(user.update_time.as_ref());
        Self { etag: user.etag.clone(), time }
    }

    /// The version in a form, in its fields `etag` and `seen` with this ending.
    pub fn from_form(form: &Form, ending: &str) -> Self {
        let field = |name: &str| form.get(&format!("{name}{ending}")).to_owned();
        Self { etag: field("etag"), time: field("seen") }
    }

    /// The latest changes of a user after this version, the newest first; none if the history does
    /// not tell.
    pub async fn changes_since(&self, client: &Client, id: &str) -> Vec<EventView> {
        let Ok(seen) = self.time.parse::<Timestamp>() else { return Vec::new() };
        let request = v1::ListHistoryRequest {
            user: Some(v1::list_history_request::User::UserId(id.to_owned())),
            from: Some(seen),
            page_size: MAX_CHANGES,
            ..Default::default()
        };
        let Ok(page) = client.directory().list_history(request).await else { return Vec::new() };
        let is_later = |event: &&v1::Event| {
            let time = event.time.unwrap_or_default();
            (time.seconds, time.nanos) > (seen.seconds, seen.nanos)
        };
        let later: Vec<_> = page.events.iter().filter(is_later).cloned().collect();
        event::views(&later)
    }
}
