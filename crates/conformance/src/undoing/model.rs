//! The model: the changes of each user that remain, the oldest first.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use polynym_directory::{Record, State, Timestamp, Value, Verification};
use polynym_identifier::{Identifier, IdentityKey};

/// The users of a tenant.
pub type Users = BTreeMap<LocalityId, Record>;

/// The bytes of a value that events have whole.
const MAX_WHOLE: usize = 1_000;

/// A change of a user.
#[derive(Clone, Debug)]
pub struct Entry {
    pub operation: String,
    /// The user before; none if the change created it.
    pub before: Option<Record>,
    /// Whether the tenant kept a history.
    pub is_recorded: bool,
}

/// The part of a user that undoing brings back.
#[derive(Clone, Debug, PartialEq)]
pub struct Visible {
    display_name: String,
    attributes: BTreeMap<String, Value>,
    state: State,
    identities: BTreeMap<Identifier, (String, Option<Verification>, bool)>,
    /// Without those of guards, which the present policies and rules give.
    holds: BTreeMap<IdentityKey, Timestamp>,
}

/// The result of an undoing for a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The operation did not touch it, or it is as before already.
    Untouched,
    /// It stays as it is, with a reason.
    Kept,
    /// It becomes this.
    Exact(Box<Visible>),
    /// It is deleted.
    Deleted,
    /// Changes without events: those of others stay.
    Loose,
}

impl Expected {
    pub const fn is_reverted(&self) -> bool {
        matches!(self, Self::Exact(_) | Self::Deleted)
    }
}

impl Visible {
    pub fn new(record: &Record, now: Timestamp) -> Self {
        let user = &record.user;
        let identity = |identity: &polynym_directory::Identity| {
            let fields =
                (identity.display.clone(), identity.verification.clone(), identity.primary);
            (identity.identifier.clone(), fields)
        };
        let holds = record.internals.holds.iter().filter(|hold| !hold.guard && hold.until > now);
        Self {
            display_name: user.display_name.clone(),
            attributes: user.attributes.clone(),
            state: user.state,
            identities: user.identities.iter().map(identity).collect(),
            holds: holds.map(|hold| (hold.key.clone(), hold.until)).collect(),
        }
    }

    pub const fn is_deleted(&self) -> bool {
        matches!(self.state, State::Deleted { .. })
    }

    const fn is_merged(&self) -> bool {
        matches!(self.state, State::Merged { .. })
    }

    /// Each value, by the name of its field; primaries as far as `after` has them: another identity
    /// of the kind takes the place of one that is gone.
    fn values(&self, after: &Self) -> BTreeMap<String, String> {
        let mut values: BTreeMap<_, _> = self
            .attributes
            .iter()
            .map(|(name, value)| (format!("attributes.{name}"), format!("{value:?}")))
            .collect();
        values.insert("display_name".to_owned(), self.display_name.clone());
        values.insert("state".to_owned(), format!("{:?}", self.state));
        for (name, (display, verification, is_primary)) in &self.identities {
            values.insert(name.to_string(), format!("{display:?} {verification:?}"));
            if *is_primary && after.identities.contains_key(name) {
                values.insert(format!("primary {}", name.kind()), name.to_string());
            }
        }
        values
    }

    /// Whether it has a value of which events have a hash.
    fn has_large_value(&self) -> bool {
        let is_large =
            |value: &Value| matches!(value, Value::String(text) if text.len() > MAX_WHOLE);
        self.attributes.values().any(is_large)
    }
}

/// The changes of all users.
#[derive(Debug, Default)]
pub struct Histories {
    changes: BTreeMap<LocalityId, Vec<Entry>>,
    /// Users of whom the history is not known any more.
    unknown: BTreeSet<LocalityId>,
}

impl Histories {
    pub fn add(&mut self, id: LocalityId, entry: Entry) {
        self.changes.entry(id).or_default().push(entry);
    }

    pub fn retain(&mut self, exists: impl Fn(&LocalityId) -> bool) {
        self.changes.retain(|id, _| exists(id));
        self.unknown.retain(exists);
    }

    /// The changes in a line each, and the users as they were before the undoing.
    pub fn summary(&self, users: &Users, now: Timestamp) -> String {
        let entry = |entry: &Entry| {
            let before = entry.before.as_ref().map(|before| Visible::new(before, now));
            format!("  {:?}, recorded: {}, {before:?}\n", entry.operation, entry.is_recorded)
        };
        let user = |(id, entries): (&LocalityId, &Vec<Entry>)| {
            let changes: String = entries.iter().map(entry).collect();
            let present = users.get(id).map(|user| Visible::new(user, now));
            format!("{id}\n{changes}  present: {present:?}\n")
        };
        self.changes.iter().map(user).collect()
    }

    fn of(&self, id: LocalityId) -> &[Entry] {
        self.changes.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The result of undoing an operation, by user.
    pub fn expected(
        &self,
        operation: &str,
        users: &Users,
        now: Timestamp,
    ) -> BTreeMap<LocalityId, Expected> {
        let alone = |(id, record): (&LocalityId, &Record)| {
            (*id, self.expected_alone(operation, record, now))
        };
        let mut expected: BTreeMap<_, _> = users.iter().map(alone).collect();
        self.keep_conflicts(operation, users, now, &mut expected);
        expected
    }

    fn expected_alone(&self, operation: &str, present: &Record, now: Timestamp) -> Expected {
        let entries = self.of(present.id());
        let visible = Visible::new(present, now);
        let Some(first) = first_of(entries, operation) else { return Expected::Untouched };
        let own = &entries[first..];
        if self.unknown.contains(&present.id()) || own.iter().any(|entry| !entry.is_recorded) {
            return Expected::Loose;
        }
        if matches!(present.user.state, State::Deleted { purge_time, .. } if purge_time <= now) {
            return Expected::Untouched;
        }
        let is_others = own.iter().any(|entry| entry.operation != operation);
        let states = |entry: &Entry| entry.before.as_ref().map(|user| Visible::new(user, now));
        let was_merged = own.iter().filter_map(states).any(|user| user.is_merged());
        let has_large = own.iter().filter_map(states).any(|user| user.has_large_value());
        if is_others || was_merged || visible.is_merged() {
            return Expected::Kept;
        }
        if has_large || own.iter().any(|entry| entry.merges(present)) {
            // Whether the value itself changed, or the merge left something, is not modelled.
            return Expected::Loose;
        }
        match &own[0].before {
            None if visible.is_deleted() => Expected::Untouched,
            None => Expected::Deleted,
            Some(before) => match before.user.state {
                State::Deleted { purge_time, .. }
                    if purge_time <= now && before.user.state != present.user.state =>
                {
                    Expected::Kept
                }
                _ if Visible::new(before, now) == visible => Expected::Loose,
                _ => Expected::Exact(Box::new(Visible::new(before, now))),
            },
        }
    }

    /// The operations that changed a user after an operation, the last one first. None if the user
    /// stays for another reason.
    pub fn blockers(&self, operation: &str, id: LocalityId) -> Option<Vec<String>> {
        let entries = self.of(id);
        let mut named: Vec<String> = Vec::new();
        for entry in entries[first_of(entries, operation)?..].iter().rev() {
            if entry.operation != operation && !named.contains(&entry.operation) {
                named.push(entry.operation.clone());
            }
        }
        Some(named).filter(|named| !named.is_empty())
    }

    /// Keeps users that get back what others have, unless those give it back.
    fn keep_conflicts(
        &self,
        operation: &str,
        users: &Users,
        now: Timestamp,
        expected: &mut BTreeMap<LocalityId, Expected>,
    ) {
        loop {
            let blocked = users.keys().find_map(|id| {
                let result = self.conflict(operation, users, now, expected, *id)?;
                Some((*id, result))
            });
            let Some((id, result)) = blocked else { return };
            expected.insert(id, result);
        }
    }

    /// The result for a user that would be as before, if it gets back what another user has.
    fn conflict(
        &self,
        operation: &str,
        users: &Users,
        now: Timestamp,
        expected: &BTreeMap<LocalityId, Expected>,
        id: LocalityId,
    ) -> Option<Expected> {
        let target = |id: &LocalityId| {
            let entries = self.of(*id);
            first_of(entries, operation).and_then(|first| entries[first].before.as_ref())
        };
        let is_exact = |id: &LocalityId| matches!(expected[id], Expected::Exact(_));
        let before = target(&id).filter(|_| is_exact(&id))?;
        if looks_like_itself(before) {
            return Some(Expected::Loose);
        }
        let regained = &wanted(before, now) - &wanted(&users[&id], now);
        let wants = |other: &LocalityId| {
            target(other).is_some_and(|user| !wanted(user, now).is_disjoint(&regained))
        };
        let mut holders = users.iter().filter(|(other, record)| {
            **other != id && (!claims(record, now).is_disjoint(&regained) || wants(other))
        });
        let keeps = |other: &LocalityId| !is_exact(other) || wants(other);
        if !holders.clone().any(|(other, _)| keeps(other)) {
            return None;
        }
        // If two users had one identifier, the model does not know which of them gets it back.
        let is_unclear =
            holders.any(|(other, _)| wants(other) || matches!(expected[other], Expected::Loose));
        Some(if is_unclear { Expected::Loose } else { Expected::Kept })
    }

    /// Removes what was undone.
    pub fn undo(&mut self, operation: &str, expected: &BTreeMap<LocalityId, Expected>) {
        for (id, expected) in expected {
            let Some(entries) = self.changes.get_mut(id) else { continue };
            let first = first_of(entries, operation);
            match (expected, first) {
                (Expected::Exact(_) | Expected::Deleted, Some(first)) => entries.truncate(first),
                (Expected::Loose, _) => drop(self.unknown.insert(*id)),
                _ => {}
            }
        }
    }

    /// Fails if an undoing changed what others than the operation changed last.
    pub fn check_others(
        &self,
        operation: &str,
        id: LocalityId,
        before: &Visible,
        after: &Visible,
    ) -> Result<(), String> {
        if self.unknown.contains(&id) || before == after {
            return Ok(());
        }
        let is_unseen = |last: &&Entry| !last.is_recorded && last.operation != operation;
        let Some(last) = self.of(id).last().filter(is_unseen) else {
            return Ok(());
        };
        let Some(former) = &last.before else {
            return Err("a user was changed that another change created".to_owned());
        };
        let former = Visible::new(former, Timestamp::MIN).values(after);
        // Changes without events may cancel out: a value that is again as it was before the first
        // of them counts as unchanged.
        let unseen = self.of(id).iter().find(|entry| !entry.is_recorded);
        let seen = unseen.and_then(|entry| entry.before.as_ref());
        let seen = seen.map(|seen| Visible::new(seen, Timestamp::MIN).values(after));
        let is_as_seen =
            |path: &String, value| seen.as_ref().is_some_and(|seen| seen.get(path) == Some(value));
        let (old, new) = (before.values(after), after.values(after));
        let changed = old.iter().find(|(path, value)| {
            former.get(*path) != Some(*value)
                && new.get(*path) != Some(*value)
                && !is_as_seen(path, value)
        });
        changed.map_or(Ok(()), |(path, _)| Err(format!("{path} was overwritten")))
    }
}

impl Entry {
    /// Whether it merged another user into this one.
    fn merges(&self, present: &Record) -> bool {
        let before = self.before.as_ref().map(|before| before.merged().len());
        before.is_some_and(|merged| merged != present.merged().len())
    }
}

/// The index of the first change of an operation.
fn first_of(entries: &[Entry], operation: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.operation == operation)
}

/// The keys that a user has.
fn claims(record: &Record, now: Timestamp) -> BTreeSet<IdentityKey> {
    let claims = record.claims().into_iter();
    let valid = claims.filter(|(_, claim)| claim.hold.is_none_or(|until| until > now));
    valid.map(|(key, _)| key).collect()
}

/// The keys that a user has, and those of all guards that its identities need.
fn wanted(record: &Record, now: Timestamp) -> BTreeSet<IdentityKey> {
    claims(record, now).into_iter().chain(guards(record)).collect()
}

/// The keys of all guards that the identities of a user need.
fn guards(record: &Record) -> Vec<IdentityKey> {
    let identities = record.user.identities.iter();
    let guards = identities.filter_map(|identity| identity.identifier.guard());
    guards.map(|guard| IdentityKey::of_guard(record.user.tenant.as_str(), &guard)).collect()
}

/// Whether a user has handles that look alike, which the policies may not allow any more.
fn looks_like_itself(record: &Record) -> bool {
    let identities = record.user.identities.iter();
    let mut keys: BTreeSet<_> =
        identities.map(|identity| record.user.key(&identity.identifier)).collect();
    !guards(record).into_iter().all(|guard| keys.insert(guard))
}
