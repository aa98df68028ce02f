//! The policies of a tenant, and their bounds.

use std::time::Duration;

use super::attribute::Value;
use super::attribute_definition::{AttributeDefinition, ValueType};
use super::tenant::Tenant;
use super::user::{Identity, Verification};
use crate::clock::Now;
use crate::error::{Error, Invalid};
use crate::timestamp::Timestamp;
use polynym_identifier::{Guard, Identifier, IdentityKey, Kind, is_region};

pub use super::policy_field::{Policy, period};
pub(crate) use super::policy_field::{read_span, span};
pub(crate) use super::policy_table::{LAST_FIELD, MAX_PERIOD, MAX_UNDO_WINDOW};
pub use super::policy_table::{POLICIES, Policies, PolicyUpdate};

/// The maximum number of regions in which a phone number is read.
const MAX_PHONE_REGIONS: usize = 8;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The time after a change of policies from which on no event has a time by the former ones: all
/// servers have read the new ones, and finished what they began before, by clocks that agree.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(3 * 60);

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

impl PolicyUpdate {
    /// Runs the checks that need no store.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (kind, time) in &self.holds {
            within(*time, MAX_PERIOD, &format!("policies.holds.{kind}"))?;
        }
        check_regions(self.phone_regions.as_deref().unwrap_or_default())?;
        POLICIES.iter().try_for_each(|policy| policy.check(self))?;
        self.attributes.check()
    }

    /// Applies the update at `now`.
    pub(crate) fn apply(&self, policies: &mut Policies, now: Timestamp) {
        if let Some(retention) = self.history_retention {
            policies.set_history_retention(retention, now);
        }
        for (kind, time) in &self.holds {
            policies.holds.insert(*kind, *time);
        }

        policies.holds.retain(|_, time| !time.is_zero());
        POLICIES.iter().for_each(|policy| policy.apply(self, policies));
        if let Some(handles) = &self.reserved_handles {
            policies.reserved_handles.clone_from(handles);
        }
        if let Some(regions) = &self.phone_regions {
            policies.phone_regions.clone_from(regions);
        }
        self.attributes.apply(&mut policies.attributes, now);
    }
}

impl Policies {
    /// Whether the attribute of this name is indexed, or will be.
    pub fn indexes(&self, name: &str) -> bool {
        self.attributes.get(name).is_none_or(|definition| definition.indexed)
    }

    /// The names of the attributes that are evidence of duplicates.
    pub fn evidence(&self) -> impl Iterator<Item = &str> {
        let evidence = self.attributes.iter().filter(|(_, definition)| definition.evidence);
        evidence.map(|(name, _)| name.as_str())
    }

    /// The attributes by whose values users are found, and whose index is there, by name.
    pub fn found_by(&self) -> impl Iterator<Item = (&str, &AttributeDefinition)> {
        let found_by = self.attributes.iter().filter(|(_, definition)| {
            definition.find && definition.indexed && definition.index_change.is_none()
        });
        found_by.map(|(name, definition)| (name.as_str(), definition))
    }

    /// Whether the index does not match the attribute's definition yet.
    pub fn is_index_changing(&self, name: &str) -> bool {
        self.attributes.get(name).is_some_and(|definition| definition.index_change.is_some())
    }

    /// The time when a definition last changed that the index does not match yet.
    pub fn index_change(&self) -> Option<Timestamp> {
        self.attributes.values().filter_map(|definition| definition.index_change).max()
    }

    /// Marks the changes up to `since` as applied to the index.
    pub(crate) fn finish_index_changes(&mut self, since: Timestamp) {
        for definition in self.attributes.values_mut() {
            definition.index_change = definition.index_change.filter(|time| *time > since);
        }
        self.attributes.retain(|_, definition| *definition != AttributeDefinition::default());
    }

    /// Checks the types of new values.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the first value of another type than its definition's.
    pub(crate) fn check_types<'a>(
        &self,
        attributes: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<(), Error> {
        if self.attributes.is_empty() {
            return Ok(());
        }
        for (name, value) in attributes {
            if let Some(wanted) = self.attributes.get(name).and_then(|defined| defined.value_type)
                && wanted != ValueType::from_value(value)
            {
                let field = format!("user.attributes.{name}");
                return Err(Error::invalid(Invalid::Attribute, field, wanted.rule()));
            }
        }
        Ok(())
    }
}

fn check_regions(regions: &[String]) -> Result<(), Error> {
    let is_twice = |n: usize| regions[..n].contains(&regions[n]);
    let rule = match regions.iter().all(|region| is_region(region)) {
        false => "each must be the code of a country by ISO 3166 in capitals, such as DE",
        true if regions.len() > MAX_PHONE_REGIONS => "at most 8 countries",
        true if (1..regions.len()).any(is_twice) => "a country is there twice",
        true => return Ok(()),
    };
    Err(Error::invalid(Invalid::Policy, "policies.phone_regions", rule))
}

pub(crate) fn within(time: Duration, max: Duration, field: &str) -> Result<(), Error> {
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
