//! The users that were merged into a user, and until when that can be undone.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use polynym_client::Client;
use polynym_presentation::duration;
use polynym_proto::v1;
use prost_types::Timestamp;
use v1::event::Change;
use v1::list_history_request::User as Subject;
use v1::{EventType, ListHistoryRequest};

use super::shared_parts::policies;
use crate::views::person::{Person, merged_name};
use crate::views::{Time, identity};

/// The maximum number of merges and undone merges that are read.
const MAX_EVENTS: i32 = 100;
/// The maximum number of users that are shown.
const MAX_USERS: usize = 25;
/// The maximum number of identities that are shown of each.
const MAX_IDENTITIES: usize = 3;

/// A user that was merged into another.
pub struct MergedView {
    pub id: String,
    /// Its name; the first identity that it brought along if it had none, or else the beginning of
    /// its id.
    pub name: String,
    pub time: Option<Time>,
    pub caller: String,
    /// Identities that it brought along, and the number of the others.
    pub identities: Vec<String>,
    pub more: usize,
    /// Until when the merge can be undone; none if it cannot.
    pub undo_until: Option<Time>,
}

/// The users that were merged into a user, the latest first, as far as its history knows. None for
/// callers who may not read it.
pub async fn users(client: &Client, id: &str, may_view: bool) -> Vec<MergedView> {
    if !may_view {
        return Vec::new();
    }
    let request = ListHistoryRequest {
        user: Some(Subject::UserId(id.to_owned())),
        types: vec![EventType::UserMerged.into(), EventType::UserUnmerged.into()],
        page_size: MAX_EVENTS,
        ..Default::default()
    };
    // A tenant may keep no history.
    let Ok(page) = client.directory().list_history(request).await else { return Vec::new() };
    if page.events.is_empty() {
        return Vec::new();
    }
    let window = duration::of(policies(client).await.undo_window);
    let mut merged = merges(page.events, window, SystemTime::now());
    let names = merged.iter().map(|user| merged_name(client, &user.id));
    let names = join_all(names).await;
    for (user, name) in merged.iter_mut().zip(names) {
        user.name = name.unwrap_or_else(|| std::mem::take(&mut user.name));
    }
    merged
}

/// The merges among events, the latest first, that were not undone.
fn merges(events: Vec<v1::Event>, window: Duration, now: SystemTime) -> Vec<MergedView> {
    let mut undone = BTreeSet::new();
    let mut merged = Vec::new();
    for event in events {
        let (Some(change), Some(set)) = (&event.change, event.change_set()) else { continue };
        let other = &set.other_user_id;
        // The event of the secondary has its new state.
        let is_secondary = set.state.is_some();
        match change {
            _ if other.is_empty() || is_secondary => {}
            Change::UserUnmerged(_) => drop(undone.insert(other.clone())),
            Change::UserMerged(_) if !undone.remove(other) => {
                merged.push(view(&event, set, window, now));
            }
            _ => {}
        }
    }
    merged.truncate(MAX_USERS);
    merged
}

fn view(event: &v1::Event, set: &v1::ChangeSet, window: Duration, now: SystemTime) -> MergedView {
    let gained = set.identities.iter().filter(|change| change.before.is_none());
    let identities = gained.filter_map(|change| change.after.as_ref());
    let identities = identities.map(|one| identity::value(one.identifier.as_ref()));
    let mut identities: Vec<_> = identities.collect();
    let more = identities.len().saturating_sub(MAX_IDENTITIES);
    identities.truncate(MAX_IDENTITIES);
    let unknown = Person::unknown(&set.other_user_id);
    let until = event.time.and_then(|time| SystemTime::try_from(time).ok()).map(|t| t + window);
    let until = until.filter(|until| *until > now).map(Timestamp::from);
    MergedView {
        id: set.other_user_id.clone(),
        time: Time::of(event.time.as_ref()),
        caller: event.caller.clone(),
        name: identities.first().cloned().unwrap_or(unknown.name),
        identities,
        more,
        undo_until: Time::of(until.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undone_merges_are_left_out() {
        let event = |second: i64, change: fn(v1::ChangeSet) -> Change, other: &str| v1::Event {
            time: Some(Timestamp { seconds: second, nanos: 0 }),
            change: Some(change(v1::ChangeSet {
                other_user_id: other.to_owned(),
                ..Default::default()
            })),
            ..Default::default()
        };
        let events = vec![
            event(4, Change::UserMerged, "b"),
            event(3, Change::UserUnmerged, "a"),
            event(2, Change::UserMerged, "a"),
            event(1, Change::UserMerged, "c"),
        ];
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        let merged = merges(events, Duration::from_secs(2), now);
        let ids: Vec<_> =
            merged.iter().map(|user| (&*user.id, user.undo_until.is_some())).collect();
        assert_eq!(ids, [("b", true), ("c", false)]);
    }
}
