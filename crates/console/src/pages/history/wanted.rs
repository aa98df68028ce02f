//! The changes that a call lists: those of all users, or those of one, from its history.

use polynym_client::{Client, Error};
use polynym_proto::v1;
use prost_types::Timestamp;
use v1::list_history_request::User;

use crate::views::event::user_ids;
use crate::views::person::People;

/// The changes that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub events: v1::ListEventsRequest,
    /// The id of the only user; empty for all users.
    pub user_id: String,
}

impl Wanted {
    /// Changes of all users.
    pub const fn of_all(events: v1::ListEventsRequest) -> Self {
        Self { events, user_id: String::new() }
    }

    /// The call that lists the history of the user.
    pub fn history(&self) -> v1::ListHistoryRequest {
        let events = self.events.clone();
        v1::ListHistoryRequest {
            tenant: events.tenant,
            user: Some(User::UserId(self.user_id.clone())),
            from: events.from,
            to: events.to,
            types: events.types,
            page_size: events.page_size,
            page_token: events.page_token,
        }
    }

    /// Whether an event is one of them.
    pub fn has(&self, event: &v1::Event) -> bool {
        (self.user_id.is_empty() || self.user_id == event.user_id) && lists(&self.events, event)
    }

    /// The next page. One of a user's history may have fewer events than fit, even none.
    pub async fn page(&self, client: &Client) -> Result<v1::ListEventsResponse, Error> {
        let directory = client.directory();
        if self.user_id.is_empty() {
            return directory.list_events(self.events.clone()).await;
        }
        let answer = match directory.list_history(self.history()).await {
            // A user who is gone has no changes.
            Err(error) if error.reason() == "USER_NOT_FOUND" => Default::default(),
            answer => answer?,
        };
        let (mut events, next_page_token) = (answer.events, answer.next_page_token);
        let events_read = events.len() as i64;
        events.retain(|event| lists(&self.events, event));
        let display_names = People::display_names(client, user_ids(&events)).await;
        Ok(v1::ListEventsResponse {
            events,
            next_page_token,
            events_read,
            display_names,
            ..Default::default()
        })
    }
}

/// Whether a call lists an event, as the API decides it.
fn lists(request: &v1::ListEventsRequest, event: &v1::Event) -> bool {
    let is_or_any = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
    let time = |time: &Timestamp| (time.seconds, time.nanos);
    let at = event.time.as_ref().map(time);
    let reason = request.reason.to_lowercase();
    is_or_any(&request.caller, &event.caller)
        && is_or_any(&request.operation_id, &event.operation_id)
        && (reason.is_empty() || event.reason.to_lowercase().contains(&reason))
        && (request.types.is_empty() || request.types.contains(&event.event_type().into()))
        && request.from.as_ref().is_none_or(|from| at >= Some(time(from)))
        && request.to.as_ref().is_none_or(|to| at < Some(time(to)))
}
