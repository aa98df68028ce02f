//! The policies of a tenant, and their bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::attribute_definition::{AttributeDefinition, DefinitionUpdate};
use super::tenant::Tenant;
use super::user::{Identity, Verification};
use crate::clock::Now;
use crate::error::{Error, Invalid};
use crate::timestamp::Timestamp;
use polynym_identifier::{Guard, Identifier, IdentityKey, Kind};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum of holds, retentions and the restore window: ten years.
pub(crate) const MAX_PERIOD: Duration = Duration::from_secs(3_650 * 24 * 60 * 60);
/// The maximum undo window. Until it ends, the merged user keeps a snapshot.
pub(crate) const MAX_UNDO_WINDOW: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The default retention of notices.
pub const INBOX_RETENTION: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The default limit of notices in an inbox.
pub const INBOX_LIMIT: u32 = 1_000;
/// The maximum limit of notices in an inbox.
const MAX_INBOX_LIMIT: u32 = 10_000;

/// The default retention of history.
pub const HISTORY_RETENTION: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The time after a change of policies from which on no event has a time by the former ones: all
/// servers have read the new ones, and finished what they began before, by clocks that agree.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(3 * 60);

/// The rules of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// How long an identifier of each kind is held for its former owner. Other kinds are not held.
    pub holds: BTreeMap<Kind, Duration>,
    /// Whether only verified identities resolve.
    pub hide_unverified: bool,
    /// Whether a user who links a verified identity takes it from a user who has it unverified.
    pub verified_wins: bool,
    /// How much newer a verification of a phone must be to take the phone from a user who has
    /// verified it; zero for never.
    pub phone_takeover_after: Duration,
    /// Whether a primary identity cannot be unlinked while the user has others of its kind.
    pub keep_primary: bool,
    /// Whether a user's last identity cannot be unlinked.
    pub keep_last: bool,
    /// Whether handles may look like others.
    pub allow_lookalikes: bool,
    /// The time for which a deleted user can be restored.
    pub restore_window: Duration,
    /// The time for which a merge can be undone.
    pub undo_window: Duration,
    /// The canonical forms of handles that cannot be registered or linked; by default
    /// [`RESERVED_HANDLES`](super::reserved::DEFAULT).
    pub reserved_handles: Option<BTreeSet<String>>,
    /// Definitions of attributes, by name. An attribute without one is indexed and takes values of
    /// any type.
    pub attributes: BTreeMap<String, AttributeDefinition>,
    /// The time for which the history of users and ownerships is kept; zero keeps none.
    pub history_retention: Duration,
    /// The time when the complete history begins; `None`: with the tenant.
    pub history_since: Option<Timestamp>,
    /// The time when the retention of history was shortened, while the servers remove older events.
    pub history_change: Option<Timestamp>,
    /// The last time that the retention of history became longer.
    pub history_extension: Option<HistoryExtension>,
    /// The time for which a notice stays in an inbox.
    pub inbox_retention: Duration,
    /// The number of notices that an inbox keeps.
    pub inbox_limit: u32,
    /// Whether users get notices about changes by the rules.
    pub rule_notices: bool,
}

/// A change to a longer retention of history. Earlier events expire by the former one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryExtension {
    /// The time when the longer retention was set.
    pub time: Timestamp,
    /// The former, shorter retention.
    pub former: Duration,
}

impl HistoryExtension {
    /// The earliest time of which the history is known at `now`. It follows the former retention
    /// until it reaches the change.
    fn history_begins(&self, now: Timestamp) -> Timestamp {
        now.minus(self.former).min(self.settled())
    }

    /// The time from which on all servers write by the longer retention.
    fn settled(&self) -> Timestamp {
        self.time.plus(SETTLE_TIME)
    }

    /// Both extensions as one, if history of before this one still expires by its former retention.
    fn followed_by(self, next: Self) -> Self {
        let is_over = self.history_begins(next.time) == self.settled();
        if is_over { next } else { Self { former: self.former.min(next.former), ..next } }
    }
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            holds: BTreeMap::from([(Kind::Handle, 30 * DAY)]),
            hide_unverified: false,
            verified_wins: false,
            phone_takeover_after: Duration::ZERO,
            keep_primary: false,
            keep_last: false,
            allow_lookalikes: false,
            restore_window: 30 * DAY,
            undo_window: 7 * DAY,
            reserved_handles: None,
            attributes: BTreeMap::new(),
            history_retention: HISTORY_RETENTION,
            history_since: None,
            history_change: None,
            history_extension: None,
            inbox_retention: INBOX_RETENTION,
            inbox_limit: INBOX_LIMIT,
            rule_notices: false,
        }
    }
}

impl Policies {
    /// The guard that an identifier reserves, if the policies require one.
    pub(crate) fn guard(&self, identifier: &Identifier) -> Option<Guard> {
        identifier.guard().filter(|_| !self.allow_lookalikes)
    }

    /// The keys that an identifier claims in a tenant: its own, then that of its guard.
    pub(crate) fn claimed_keys(
        &self,
        tenant: &Tenant,
        identifier: &Identifier,
    ) -> Vec<IdentityKey> {
        let own = IdentityKey::new(tenant.as_str(), identifier);
        let guard = self.guard(identifier);
        let guard_key = guard.map(|guard| IdentityKey::of_guard(tenant.as_str(), &guard));
        std::iter::once(own).chain(guard_key).collect()
    }

    /// The time for which the key is held for its former owner. A guard is held like its handle.
    pub(crate) fn hold(&self, key: &IdentityKey) -> Option<Duration> {
        let kind = match key.parts().1 {
            Guard::LOOKALIKE => Kind::Handle,
            word => word.parse().ok()?,
        };
        self.holds.get(&kind).copied().filter(|time| !time.is_zero())
    }

    /// Whether a user who links an identity of this kind verified may take it from another.
    pub(crate) fn allows_takeover(&self, kind: Kind) -> bool {
        self.verified_wins || self.phone_lapse(kind).is_some()
    }

    /// Whether a user loses `identity` to another who links it with the verification `new`.
    pub(crate) fn yields(&self, identity: &Identity, new: &Verification, now: Now) -> bool {
        let kind = identity.identifier.kind();
        let lapses = |old: &Verification, period| {
            let end = old.time.plus(period);
            now.is_past(end) && end <= new.time
        };
        match &identity.verification {
            None => self.allows_takeover(kind),
            Some(old) => self.phone_lapse(kind).is_some_and(|period| lapses(old, period)),
        }
    }

    /// The time for which a verification protects an identity of this kind, if not for ever.
    fn phone_lapse(&self, kind: Kind) -> Option<Duration> {
        let is_phone = kind == Kind::Phone;
        Some(self.phone_takeover_after).filter(|period| is_phone && !period.is_zero())
    }

    /// Whether both are equal but for the times of changes.
    pub(crate) fn has_same_settings(&self, other: &Self) -> bool {
        let without_times =
            |policies: &Self| Self { history_since: None, ..policies.with_changes_finished() };
        without_times(self) == without_times(other)
    }

    /// The earliest time of which the history is known.
    pub fn history_begins(&self, now: Timestamp) -> Timestamp {
        let extension = self.history_extension.map(|extension| extension.history_begins(now));
        let bounds = [self.history_since, extension].into_iter().flatten();
        bounds.fold(now.minus(self.history_retention), Timestamp::max)
    }

    /// Sets the retention of history from `now` on. A longer one does not bring back events that
    /// had already expired, and keeps those from before no longer than the former one.
    fn set_history_retention(&mut self, retention: Duration, now: Timestamp) {
        if retention > self.history_retention {
            self.history_since = Some(self.history_begins(now));
            let next = HistoryExtension { time: now, former: self.history_retention };
            let former = self.history_extension;
            self.history_extension = Some(former.map_or(next, |former| former.followed_by(next)));
        }
        if retention < self.history_retention {
            self.history_change = Some(now);
        }
        self.history_retention = retention;
    }

    /// Marks a shorter retention as applied, for changes up to `since`.
    pub(crate) fn finish_history_change(&mut self, since: Timestamp) {
        self.history_change = self.history_change.filter(|time| *time > since);
    }

    /// The policies once the servers have applied all changes.
    pub(crate) fn with_changes_finished(&self) -> Self {
        let mut policies = Self { history_extension: None, ..self.clone() };
        policies.finish_index_changes(Timestamp::MAX);
        policies.finish_history_change(Timestamp::MAX);
        policies
    }
}

/// New values for some of a tenant's policies. Absent ones stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyUpdate {
    /// New periods for some kinds.
    pub holds: BTreeMap<Kind, Duration>,
    /// See [`Policies::hide_unverified`].
    pub hide_unverified: Option<bool>,
    /// See [`Policies::verified_wins`].
    pub verified_wins: Option<bool>,
    /// See [`Policies::phone_takeover_after`].
    pub phone_takeover_after: Option<Duration>,
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
    /// Runs the checks that need no store.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (kind, time) in &self.holds {
            within(*time, MAX_PERIOD, &format!("policies.holds.{kind}"))?;
        }
        for (period, max, field) in [
            (self.phone_takeover_after, MAX_PERIOD, "policies.phone_takeover_after"),
            (self.restore_window, MAX_PERIOD, "policies.restore_window"),
            (self.undo_window, MAX_UNDO_WINDOW, "policies.undo_window"),
            (self.history_retention, MAX_PERIOD, "policies.history_retention"),
            (self.inbox_retention, MAX_PERIOD, "policies.inbox_retention"),
        ] {
            within(period.unwrap_or_default(), max, field)?;
        }
        if self.inbox_limit.is_some_and(|count| !(1..=MAX_INBOX_LIMIT).contains(&count)) {
            let message = format!("1 to {MAX_INBOX_LIMIT} notices");
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
        set(&mut policies.phone_takeover_after, &self.phone_takeover_after);
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
            policies.set_history_retention(retention, now);
        }
    }
}

fn within(time: Duration, max: Duration, field: &str) -> Result<(), Error> {
    if time <= max {
        return Ok(());
    }
    let message = format!("at most {} days", max.as_secs() / DAY.as_secs());
    Err(Error::invalid(Invalid::Policy, field, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);
    const NOW: Timestamp = Timestamp::from_millis(2_000_000_000_000);

    /// Policies whose retention was changed at these hours.
    fn changed(first: Duration, changes: &[(u32, Duration)]) -> Policies {
        let mut policies = Policies { history_retention: first, ..Policies::default() };
        for (hour, retention) in changes {
            policies.set_history_retention(*retention, NOW.plus(*hour * HOUR));
        }
        policies
    }

    #[test]
    fn a_longer_retention_does_not_extend_what_was_written_before() {
        let policies = changed(2 * HOUR, &[(0, 10 * HOUR)]);
        let begins = |hour| policies.history_begins(NOW.plus(hour * HOUR));
        assert_eq!(begins(0), NOW.minus(2 * HOUR));
        assert_eq!(begins(1), NOW.minus(HOUR));
        assert_eq!([3, 9].map(begins), [NOW.plus(SETTLE_TIME); 2]);
        assert_eq!(begins(13), NOW.plus(3 * HOUR), "the present retention");
    }

    #[test]
    fn a_history_that_was_off_begins_once_all_servers_write_it() {
        let policies = changed(Duration::ZERO, &[(0, 10 * HOUR)]);
        let [second, later] = [Duration::from_secs(1), HOUR].map(|by| NOW.plus(by));
        assert_eq!(policies.history_begins(second), second);
        assert_eq!(policies.history_begins(later), NOW.plus(SETTLE_TIME));
    }

    #[test]
    fn a_retention_that_is_shortened_and_put_back_hides_what_expires_early() {
        let policies = changed(400 * DAY, &[(0, HOUR), (1, 400 * DAY)]);
        assert_eq!(policies.history_begins(NOW.plus(HOUR)), NOW);
        let settled = NOW.plus(HOUR).plus(SETTLE_TIME);
        assert_eq!(policies.history_begins(NOW.plus(DAY)), settled);
    }

    #[test]
    fn repeated_extensions_keep_the_shortest_retention_that_still_applies() {
        let soon = changed(2 * HOUR, &[(0, 4 * HOUR), (1, 10 * HOUR)]);
        assert_eq!(soon.history_extension.unwrap().former, 2 * HOUR);
        let begins = soon.history_begins(NOW.plus(2 * HOUR));
        assert_eq!(begins, NOW, "what was written before the first is over");
        let late = changed(2 * HOUR, &[(0, 4 * HOUR), (3, 10 * HOUR)]);
        assert_eq!(late.history_extension.unwrap().former, 4 * HOUR);
        assert_eq!(late.history_begins(NOW.plus(4 * HOUR)), NOW.plus(SETTLE_TIME));
    }
}
