//! Bulk changes.

use std::time::{Duration, SystemTime};

use polynym_presentation::action::{bulk_words, undone};
use polynym_presentation::blocker::{Blockers, Line};
use polynym_presentation::state;
use polynym_proto::v1;
use v1::bulk_action::Action;
use v1::bulk_change::{Failure, FailureCount};

use super::Time;
use super::person::People;
use super::text::cut;
use super::user::attribute;

/// The failures that a page shows.
const MAX_FAILURES: usize = 25;
/// The attributes that a page shows, and the characters of a value.
const MAX_ATTRIBUTES: usize = 20;
const VALUE_CHARACTERS: usize = 200;
/// The time for which pages ask often for the progress.
const QUICK: Duration = Duration::from_secs(5);

/// A bulk change.
#[derive(Clone, Debug)]
pub struct BulkView {
    /// The id, which is also the id of the operation.
    pub id: String,
    /// The filter; empty for all users, or those of a list.
    pub filter: String,
    /// The number of listed users, such as `2 users`; empty without a list.
    pub listed: String,
    /// The operation that it undoes; empty if it does something else.
    pub undone: String,
    /// The name of the file that this operation imported; empty if it is not known.
    pub undone_name: String,
    /// The part of its users that had their turn, if their number is known.
    pub percent: Option<i64>,
    /// What has to be undone first.
    pub blockers: Vec<Line>,
    /// What it does, such as `disable`.
    pub verb: &'static str,
    /// The attributes that it sets or removes, in words.
    pub attributes: Vec<String>,
    /// Whether it only counts.
    pub is_dry_run: bool,
    /// The state, such as `running`.
    pub state: &'static str,
    /// The name of the caller.
    pub caller: String,
    /// The caller's reason.
    pub reason: String,
    /// Users that had their turn.
    pub checked: i64,
    /// Users that changed, or would.
    pub changed: i64,
    /// Users that were so already.
    pub unchanged: i64,
    /// Users to which it does not apply.
    pub skipped: i64,
    /// Users that failed.
    pub failed: i64,
    /// Why users failed, with their numbers.
    pub reasons: Vec<FailureCount>,
    /// The first users that failed.
    pub failures: Vec<Failure>,
    /// Their names.
    pub people: People,
    /// Whether further failures are known.
    pub has_more_failures: bool,
    /// Whether it was started a moment ago.
    pub is_new: bool,
    /// When it was started.
    pub created: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// Why it stopped or failed.
    pub end_reason: String,
    /// The error for which its next users are being retried; empty unless they are.
    pub wait_reason: String,
}

impl BulkView {
    /// The view of a bulk change.
    pub fn of(change: &v1::BulkChange) -> Self {
        let counts = change.counts.clone().unwrap_or_default();
        let action = change.action.as_ref().and_then(|action| action.action.as_ref());
        Self {
            id: change.bulk_id.clone(),
            filter: change.filter.clone(),
            listed: match change.listed_users {
                0 => String::new(),
                1 => "1 user".to_owned(),
                users => format!("{users} users"),
            },
            undone: action.and_then(undone).unwrap_or_default().to_owned(),
            undone_name: String::new(),
            percent: (counts.checked * 100).checked_div(change.listed_users),
            blockers: Blockers::of_bulk(&change.blockers),
            verb: verb(action),
            attributes: attributes(action),
            is_dry_run: change.validate_only,
            state: state::bulk_word(change.state()),
            caller: change.caller.clone(),
            reason: change.reason.clone(),
            checked: counts.checked,
            changed: counts.changed,
            unchanged: counts.unchanged,
            skipped: counts.skipped,
            failed: counts.failed.iter().map(|failed| failed.users).sum(),
            reasons: counts.failed,
            failures: change.failures.iter().take(MAX_FAILURES).cloned().collect(),
            people: People::default(),
            has_more_failures: change.failures.len() > MAX_FAILURES,
            is_new: is_new(change),
            created: Time::of(change.create_time.as_ref()),
            ended: Time::of(change.end_time.as_ref()),
            end_reason: change.end_reason.clone(),
            wait_reason: change.wait_reason.clone(),
        }
    }

    /// With the name of the file whose import it undoes.
    pub fn named(self, undone_name: String) -> Self {
        Self { undone_name, ..self }
    }

    /// Whether it is a dry run that has ended, of a filter or of a list that is at hand.
    pub fn can_be_applied(&self, has_list: bool) -> bool {
        let is_change = self.is_dry_run && self.undone.is_empty();
        is_change && self.listed.is_empty() != has_list && !self.is_running()
    }

    /// The state of the operation that it undoes, such as `partly undone`.
    pub fn undone_word(&self) -> &'static str {
        match self.state {
            "running" => "being undone",
            "completed" if self.failed == 0 => "undone",
            _ => "partly undone",
        }
    }

    /// The interval in which a page asks for its progress: small ones end at once.
    pub fn poll_interval(&self) -> &'static str {
        if self.is_new { "300ms" } else { "2s" }
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }

    /// Whether it can be resumed.
    pub fn can_resume(&self) -> bool {
        matches!(self.state, "stopped" | "failed")
    }

    /// Why the server stopped it; empty if a caller did.
    pub fn stop_cause(&self) -> &'static str {
        state::stop_cause(&self.end_reason)
    }

    /// Whether it deletes users.
    pub fn is_deletion(&self) -> bool {
        self.verb == "delete"
    }

    /// Whether failed users are listed.
    pub fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }
}

/// Whether a bulk change was started a moment ago.
fn is_new(change: &v1::BulkChange) -> bool {
    let began = change.create_time.and_then(|time| SystemTime::try_from(time).ok());
    began.is_some_and(|began| began.elapsed().is_ok_and(|age| age < QUICK))
}

/// What an action does.
fn verb(action: Option<&Action>) -> &'static str {
    match action {
        Some(Action::Attributes(_)) => "change attributes of",
        Some(action) => bulk_words(action).0,
        None => "change",
    }
}

fn attributes(action: Option<&Action>) -> Vec<String> {
    let Some(Action::Attributes(attributes)) = action else { return Vec::new() };
    let set = attributes
        .set
        .iter()
        .map(|(name, value)| format!("set {name} to {}", cut(attribute(value), VALUE_CHARACTERS)));
    let remove = attributes.remove.iter().map(|name| format!("remove {name}"));
    let mut all: Vec<_> = set.chain(remove).collect();
    all.sort();
    let more = all.len().saturating_sub(MAX_ATTRIBUTES);
    all.truncate(MAX_ATTRIBUTES);
    all.extend((more > 0).then(|| format!("and {more} more")));
    all
}
