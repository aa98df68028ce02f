//! The difference between users before and after a mutation: the users and claims to write. Claims
//! follow from the users alone, so no change can omit one.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::{journal, rule_notices};
use crate::error::Error;
use crate::model::claim::{Claim, ClaimWrite};
use crate::model::record::{Hold, Record};
use crate::model::user::{Identity, State, User};
use crate::mutation::read_set::{DecideError, ReadRequest, ReadSet, ReadState, Write, WriteSet};
use crate::mutation::{Mutation, UserChange};
use crate::search::searched_elements;
use crate::size::size;
use crate::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// One user before and after a mutation.
pub struct UserTransition<'v> {
    /// The user as read; `None` if it is new.
    pub before: Option<&'v Record>,
    /// The user to store; `None` to remove it.
    pub after: Option<Record>,
}

/// For each key whose claim changes, the claim before and after.
pub type ClaimDiff = BTreeMap<IdentityKey, (Option<Claim>, Option<Claim>)>;

impl<'v> UserTransition<'v> {
    /// The transition of an existing user.
    pub const fn new(before: &'v Record, after: Record) -> Self {
        Self { before: Some(before), after: Some(after) }
    }

    /// The user before and after, unless it is new or removed.
    fn both(&mut self) -> Option<(&User, &mut User)> {
        Some((&self.before?.user, &mut self.after.as_mut()?.user))
    }

    /// The user's id.
    pub(crate) fn id(&self) -> Option<LocalityId> {
        self.before.or(self.after.as_ref()).map(Record::id)
    }

    /// Whether the user was deleted before the mutation. A line of an import changes only those
    /// deleted users whom an undo deleted.
    fn was_deleted(&self) -> bool {
        self.before.is_some_and(|before| matches!(before.user.state, State::Deleted { .. }))
    }

    pub(crate) fn is_of(&self, id: LocalityId) -> bool {
        self.id() == Some(id)
    }
}

/// The write set of a mutation with these transitions. `changes` has the changes of claims that do
/// not follow from identities: those on held keys.
pub fn plan_writes(
    mutation: &Mutation,
    read_set: &ReadSet,
    mut transitions: Vec<UserTransition<'_>>,
    mut changes: ClaimDiff,
) -> Result<WriteSet, DecideError> {
    check_subjects(mutation, &transitions)?;
    for transition in &mut transitions {
        transition.after.iter_mut().for_each(|after| after.user.assign_primaries());
        add_changes(mutation, &mut changes, transition)?;
    }

    update_holds(mutation, &mut transitions, &mut changes);
    let time = set_update_times(mutation, &mut transitions);
    if let Some(id) = mutation.user_id()
        && let Some(transition) = transitions.iter().find(|transition| transition.is_of(id))
    {
        check_limits(mutation, transition)?;
    }

    let events = journal::events(mutation, time, &transitions);
    let ended = journal::ended(mutation, time, &transitions, &changes);
    let claims = claim_writes(mutation, read_set, changes)?;
    let mut write_set = user_writes(mutation, transitions);
    write_set.writes.extend(rule_notices::writes(mutation, &events));
    if !mutation.policies.history_retention.is_zero() {
        write_set.events = events;
    }
    write_set.writes.extend(claims.into_iter().map(|(key, write)| Write::Claim(key, write)));
    write_set.writes.extend(
        ended.into_iter().map(|(key, ownership)| Write::EndOwnership(key, Box::new(ownership))),
    );
    Ok(write_set)
}

/// Checks that a mutation changes users of its tenant alone, and turns none into another.
fn check_subjects(mutation: &Mutation, transitions: &[UserTransition<'_>]) -> Result<(), Error> {
    let is_own = |record: &Record| record.user.tenant == mutation.tenant;
    let is_sound = |UserTransition { before, after }: &UserTransition<'_>| {
        let is_same = before.zip(after.as_ref()).is_none_or(|(old, new)| old.id() == new.id());
        is_same && before.is_none_or(is_own) && after.as_ref().is_none_or(is_own)
    };
    if transitions.iter().all(is_sound) {
        return Ok(());
    }
    let outside = || Error::Internal("a change of a user of another tenant".into());
    Err(mutation.user_id().map_or_else(outside, |user| Error::MergeDamaged { user }))
}

/// The write set of the users alone.
fn user_writes(mutation: &Mutation, transitions: Vec<UserTransition<'_>>) -> WriteSet {
    let mut write_set = WriteSet::unchanged(mutation.user_id());
    let (mut stored, mut removed) = (Vec::new(), Vec::new());
    for UserTransition { before, after } in transitions {
        match after {
            None => removed.extend(before.map(Record::id)),
            Some(after) if before != Some(&after) => stored.push(Box::new(after)),
            Some(after) if mutation.user_id() == Some(after.id()) => {
                write_set.unchanged = Some(after.user);
            }
            Some(_) => {}
        }
    }

    stored.sort_unstable_by_key(|record| record.id());
    removed.sort_unstable();
    write_set.writes.extend(stored.into_iter().map(Write::PutUser));
    write_set.writes.extend(removed.into_iter().map(Write::RemoveUser));
    write_set
}

/// Sets the update time of the users that change visibly: one time for all, later than any change
/// before. Returns the time of the mutation.
fn set_update_times(mutation: &Mutation, transitions: &mut [UserTransition<'_>]) -> Timestamp {
    let is_visible =
        |(before, after): &(&User, &mut User)| **before != **after && before.etag() != after.etag();
    let changed: Vec<(&User, &mut User)> =
        transitions.iter_mut().filter_map(UserTransition::both).filter(is_visible).collect();
    let times = changed.iter().map(|(before, _)| mutation.now.time.after(before.update_time));
    let time = times.max().unwrap_or(mutation.now.time);
    for (_, after) in changed {
        after.update_time = time;
    }
    time
}

/// Checks the user's limits. A lowered limit only stops growth: a present size is accepted.
pub fn check_limits(
    mutation: &Mutation,
    UserTransition { before, after }: &UserTransition<'_>,
) -> Result<(), Error> {
    let check =
        |what, limit, count: &dyn Fn(&Record) -> usize| match after.as_ref().map_or(0, count) {
            n if n > limit && n > before.map_or(0, count) => {
                Err(Error::TooMany { what, limit, count: n })
            }
            _ => Ok(()),
        };
    check("identities", mutation.limits.identities, &|record| record.user.identities.len())?;
    check("attributes", mutation.limits.attributes, &|record| record.user.attributes.len())?;
    check("values to be found by", mutation.limits.elements, &|record| {
        searched_elements(&record.user, &mutation.policies)
    })?;
    check("identifiers held for it", mutation.limits.holds, &|record| {
        record.internals.holds.iter().filter(|hold| !mutation.is_past(hold.until)).count()
    })?;
    check("users merged into it", mutation.limits.merged, &|record| record.internals.merged.len())?;

    check("bytes", mutation.limits.bytes, &|record| size(&record.user))
}

/// Adds the changes of claims on a user's identities and guards.
pub fn add_changes(
    mutation: &Mutation,
    changes: &mut ClaimDiff,
    transition: &UserTransition<'_>,
) -> Result<(), Error> {
    let UserTransition { before, after } = transition;
    let (released, taken) = trim_common(identities(*before), identities(after.as_ref()));
    if let Some(before) = before {
        let guards = before.internals.guards.iter().map(|guarded| before.guard_claim(guarded));
        for (key, claim) in released.iter().map(|identity| before.claim(identity)).chain(guards) {
            changes.entry(key).or_default().0 = Some(claim);
        }
    }

    if let Some(after) = after {
        let guards = after.internals.guards.iter().map(|guarded| after.guard_claim(guarded));
        for (key, claim) in taken.iter().map(|identity| after.claim(identity)).chain(guards) {
            if changes.get(&key).is_some_and(|(_, after)| after.is_some()) {
                return Err(Error::IdentityConfusable { field: mutation.field_of(&key) });
            }
            changes.entry(key).or_default().1 = Some(claim);
        }
    }

    Ok(())
}

fn identities(record: Option<&Record>) -> &[Identity] {
    record.map_or(&[], |record| &record.user.identities)
}

/// Two lists of identities without their common start and end, whose claims do not change.
fn trim_common<'a>(
    before: &'a [Identity],
    after: &'a [Identity],
) -> (&'a [Identity], &'a [Identity]) {
    let same = |(a, b): &(&Identity, &Identity)| {
        a.identifier == b.identifier && a.rules_version == b.rules_version
    };
    let start = before.iter().zip(after).take_while(same).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
    (&before[..before.len() - end], &after[..after.len() - end])
}

/// Holds the keys that users release, and removes the holds of keys that they take back.
fn update_holds(
    mutation: &Mutation,
    transitions: &mut [UserTransition<'_>],
    changes: &mut ClaimDiff,
) {
    let is_releasing = matches!(
        mutation.user_change(),
        Some(
            UserChange::Unlink(_)
                | UserChange::Replace(..)
                | UserChange::Import(_)
                | UserChange::Purge
                | UserChange::Expire
        )
    );

    for (key, (before, after)) in changes {
        let claim = after.as_ref().or(before.as_ref());
        let Some(owner) = claim.and_then(|claim| claim.owner) else { continue };
        let transition = transitions.iter_mut().find(|transition| transition.is_of(owner));
        let is_undone = transition.as_ref().is_some_and(|transition| {
            matches!(mutation.user_change(), Some(UserChange::Import(_)))
                && transition.was_deleted()
        });
        let record = transition.and_then(|transition| transition.after.as_mut());
        match (&before, &after) {
            (Some(released), None) if is_releasing && !is_undone && released.hold.is_none() => {
                let Some(period) = mutation.policies.hold(key) else { continue };
                let owner = record.as_ref().map(|record| record.id());
                let hold = Some(mutation.now.time.plus(period));
                let held = Claim { hold, owner, ..released.clone() };
                if let Some(record) = record {
                    record.internals.holds.retain(|hold| !mutation.is_past(hold.until));
                    record.internals.holds.extend(Hold::from_claim(key, &held));
                }
                *after = Some(held);
            }
            (_, Some(taken)) if taken.hold.is_none() => {
                if let Some(record) = record {
                    record.internals.holds.retain(|hold| hold.key != *key);
                }
            }
            _ => {}
        }
    }
}

/// The writes of these changes of claims.
fn claim_writes(
    mutation: &Mutation,
    read_set: &ReadSet,
    changes: ClaimDiff,
) -> Result<Vec<(IdentityKey, ClaimWrite)>, DecideError> {
    let mut claims = Vec::with_capacity(changes.len());
    let mut needs = ReadRequest::default();
    for (key, (before, after)) in changes {
        let write = match (before, after) {
            (before, after) if before == after => continue,
            (_, None) => ClaimWrite::Delete,
            (Some(_), Some(after)) => ClaimWrite::Update(after),
            (None, Some(after)) => match read_set.claim(&key, mutation.dry_run) {
                ReadState::Absent => ClaimWrite::Insert(after),
                ReadState::Present(claim) => {
                    match claim.refusal(&after, mutation.now, || mutation.field_of(&key)) {
                        Some(refusal) => return Err(refusal.into()),
                        None => ClaimWrite::Update(after),
                    }
                }
                ReadState::Unread => {
                    needs.claims.push(key);
                    continue;
                }
            },
        };
        claims.push((key, write));
    }

    if needs.claims.is_empty() { Ok(claims) } else { Err(DecideError::from(needs)) }
}
