//! The policies of a tenant, and their bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::attribute_definition::{AttributeDefinition, DefinitionUpdate};
use super::timestamp::Timestamp;
use crate::error::{Error, Invalid};
use polynym_identifier::{Guard, IdentityKey, Kind};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest that anything is held or can be restored: ten years.
const LONGEST: Duration = Duration::from_secs(3_650 * 24 * 60 * 60);
/// The longest that a merge can be undone: what it takes is kept with the user that is gone.
const LONGEST_UNDO: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The default retention of notices, and the default number of them in an inbox.
pub const INBOX_RETENTION: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// See [`INBOX_RETENTION`].
pub const INBOX_LIMIT: u32 = 1_000;
/// The most notices that a tenant can have an inbox keep.
const LARGEST_INBOX: u32 = 10_000;

/// The default retention of history.
pub const HISTORY: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The rules of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// For how long an identifier of each kind is held for its former owner. A kind that is absent
    /// is not held.
    pub holds: BTreeMap<Kind, Duration>,
    /// Whether identities that are not verified do not resolve.
    pub hide_unverified: bool,
    /// Whether a user who links a verified identity takes it from one whose identity is not
    /// verified.
    pub verified_wins: bool,
    /// Whether a primary identity cannot be unlinked while the user has others of its kind.
    pub keep_primary: bool,
    /// Whether a user's last identity cannot be unlinked.
    pub keep_last: bool,
    /// Whether handles may look like others.
    pub allow_lookalikes: bool,
    /// For how long a deleted user can be restored.
    pub restore_window: Duration,
    /// For how long a merge can be undone.
    pub undo_window: Duration,
    /// The canonical forms of handles that cannot be registered or linked; if absent, those of
    /// [`RESERVED_HANDLES`](super::reserved::DEFAULT).
    pub reserved_handles: Option<BTreeSet<String>>,
    /// Definitions of attributes, by name. One that is not among them is indexed, and has values of
    /// any type.
    pub attributes: BTreeMap<String, AttributeDefinition>,
    /// For how long the history of users and of ownerships is kept; zero: there is none.
    pub history_retention: Duration,
    /// Since when there is all of the history that is to be kept; none where that is since the
    /// tenant was made.
    pub history_since: Option<Timestamp>,
    /// Since when the servers remove what a shorter retention no longer keeps; none once they are
    /// done.
    pub history_change: Option<Timestamp>,
    /// For how long a notice stays in an inbox.
    pub inbox_retention: Duration,
    /// The number of notices that an inbox keeps.
    pub inbox_limit: u32,
    /// Whether users get notices of what the rules do to them.
    pub rule_notices: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            holds: BTreeMap::from([(Kind::Handle, 30 * DAY)]),
            hide_unverified: false,
            verified_wins: false,
            keep_primary: false,
            keep_last: false,
            allow_lookalikes: false,
            restore_window: 30 * DAY,
            undo_window: 7 * DAY,
            reserved_handles: None,
            attributes: BTreeMap::new(),
            history_retention: HISTORY,
            history_since: None,
            history_change: None,
            inbox_retention: INBOX_RETENTION,
            inbox_limit: INBOX_LIMIT,
            rule_notices: false,
        }
    }
}

impl Policies {
    /// For how long the key is held for its former owner; a guard is held like the handle that it
    /// guards.
    pub(crate) fn hold(&self, key: &IdentityKey) -> Option<Duration> {
        let kind = match key.parts().1 {
            Guard::LOOKALIKE => Kind::Handle,
            word => word.parse().ok()?,
        };
        self.holds.get(&kind).copied().filter(|time| !time.is_zero())
    }

    /// Whether an admin has set the same, whenever that was.
    pub(crate) fn is_set_like(&self, other: &Self) -> bool {
        let set = |policies: &Self| Self { history_since: None, ..policies.settled() };
        set(self) == set(other)
    }

    /// The earliest time of which the history is known.
    pub fn history_begins(&self, now: Timestamp) -> Timestamp {
        let kept = now.minus(self.history_retention);
        self.history_since.map_or(kept, |since| since.max(kept))
    }

    /// Sets the retention of history from `now` on. A longer retention does not bring back events
    /// that were already older than the former one.
    fn keep_history(&mut self, retention: Duration, now: Timestamp) {
        if retention > self.history_retention {
            self.history_since = Some(self.history_begins(now));
        }
        if retention < self.history_retention {
            self.history_change = Some(now);
        }
        self.history_retention = retention;
    }

    /// Notes that what a retention no longer keeps is removed, up to the change at `since`.
    pub(crate) fn finish_history_change(&mut self, since: Timestamp) {
        self.history_change = self.history_change.filter(|time| *time > since);
    }

    /// The policies once the servers have done all that changes of them ask for.
    pub(crate) fn settled(&self) -> Self {
        let mut policies = self.clone();
        policies.finish_index_changes(Timestamp::MAX);
        policies.finish_history_change(Timestamp::MAX);
        policies
    }
}

/// New values for some of a tenant's policies; what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyUpdate {
    /// New times for some kinds.
    pub holds: BTreeMap<Kind, Duration>,
    /// See [`Policies::hide_unverified`].
    pub hide_unverified: Option<bool>,
    /// See [`Policies::verified_wins`].
    pub verified_wins: Option<bool>,
    /// See [`Policies::keep_primary`].
    pub keep_primary: Option<bool>,
    /// See [`Policies::keep_last`].
    pub keep_last: Option<bool>,
    /// See [`Policies::allow_lookalikes`].
    pub allow_lookalikes: Option<bool>,
    /// See [`Policies::restore_window`].
    pub restore_window: Option<Duration>,
    /// See [`Policies::undo_window`].
    pub undo_window: Option<Duration>,
    /// See [`Policies::reserved_handles`].
    pub reserved_handles: Option<Option<BTreeSet<String>>>,
    /// See [`Policies::attributes`].
    pub attributes: DefinitionUpdate,
    /// See [`Policies::history_retention`].
    pub history_retention: Option<Duration>,
    /// See [`Policies::inbox_retention`].
    pub inbox_retention: Option<Duration>,
    /// See [`Policies::inbox_limit`].
    pub inbox_limit: Option<u32>,
    /// See [`Policies::rule_notices`].
    pub rule_notices: Option<bool>,
}

impl PolicyUpdate {
    /// Checks what no store needs to be asked for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (kind, time) in &self.holds {
            within(*time, LONGEST, &format!("policies.holds.{kind}"))?;
        }
        within(self.restore_window.unwrap_or_default(), LONGEST, "policies.restore_window")?;
        within(self.undo_window.unwrap_or_default(), LONGEST_UNDO, "policies.undo_window")?;
        let history = self.history_retention.unwrap_or_default();
        within(history, LONGEST, "policies.history_retention")?;
        let inbox = self.inbox_retention.unwrap_or_default();
        within(inbox, LONGEST, "policies.inbox_retention")?;
        if self.inbox_limit.is_some_and(|count| !(1..=LARGEST_INBOX).contains(&count)) {
            let message = format!("1 to {LARGEST_INBOX} notices");
            return Err(Error::invalid(Invalid::Policy, "policies.inbox_limit", message));
        }
        self.attributes.check()
    }

    /// Applies the update at `now`.
    pub(crate) fn apply(&self, policies: &mut Policies, now: Timestamp) {
        fn set<T: Clone>(field: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        for (kind, time) in &self.holds {
            policies.holds.insert(*kind, *time);
        }

        policies.holds.retain(|_, time| !time.is_zero());
        set(&mut policies.hide_unverified, &self.hide_unverified);
        set(&mut policies.verified_wins, &self.verified_wins);
        set(&mut policies.keep_primary, &self.keep_primary);
        set(&mut policies.keep_last, &self.keep_last);
        set(&mut policies.allow_lookalikes, &self.allow_lookalikes);
        set(&mut policies.restore_window, &self.restore_window);
        set(&mut policies.undo_window, &self.undo_window);

        set(&mut policies.reserved_handles, &self.reserved_handles);
        set(&mut policies.inbox_retention, &self.inbox_retention);
        set(&mut policies.inbox_limit, &self.inbox_limit);
        set(&mut policies.rule_notices, &self.rule_notices);
        self.attributes.apply(policies, now);
        if let Some(retention) = self.history_retention {
            policies.keep_history(retention, now);
        }
    }
}

fn within(time: Duration, longest: Duration, field: &str) -> Result<(), Error> {
    if time <= longest {
        return Ok(());
    }
    let message = format!("at most {} days", longest.as_secs() / DAY.as_secs());
    Err(Error::invalid(Invalid::Policy, field, message))
}
