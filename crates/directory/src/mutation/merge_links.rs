//! The links between merged users: a user lists those that were merged into it, and each of them
//! names the user that it was merged into. Imports store records one by one, so a record may name
//! users that do not exist yet. A link therefore counts only if both records name each other in one
//! tenant. Whatever follows a stored link checks it here.

use std::collections::HashSet;

use locality_uuid::LocalityId;

use super::Mutation;
use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, Invalid};
use crate::model::imported_user::ImportedUser;
use crate::model::record::{MergeSnapshot, Record};
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, ReadSet, WriteSet};

/// The longest chain of merges that is followed.
pub const MAX_STEPS: usize = 1_000;

/// The tenant of a user, and the user that it was merged into.
pub type MergedInto<'u> = (&'u [u8], Option<LocalityId>);

/// The parts of a record that name other users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeLinks {
    /// The user.
    pub user: LocalityId,
    /// Its tenant.
    pub tenant: Tenant,
    /// The user that it was merged into.
    pub into: Option<LocalityId>,
    /// The users that it lists as merged into it, directly or indirectly.
    pub listed: Vec<LocalityId>,
    /// Whether the undo data of its merge belongs to another user, or has values that no call can
    /// set.
    pub has_damaged_undo: bool,
}

/// The relation of a listed user to the user that lists it, by the record of the listed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// There is no such user yet.
    Absent,
    /// It was merged into a listed user that does not exist yet.
    Waiting,
    /// It was merged into the user.
    Merged,
    /// It was not merged into the user, is the user itself, or is listed before.
    Separate,
    /// It belongs to another tenant.
    Foreign,
}

impl MergeLinks {
    /// The links of a record.
    pub fn from_record(record: &Record) -> Self {
        let undo = record.internals.undo.as_deref();
        Self {
            user: record.id(),
            tenant: record.user.tenant.clone(),
            into: merged_into(record.user.state),
            listed: record.internals.merged.clone(),
            has_damaged_undo: undo.is_some_and(|undo| !is_undo_of(record, undo)),
        }
    }

    /// Its own part as a listed user.
    pub fn merged_into(&self) -> MergedInto<'_> {
        (self.tenant.as_str().as_bytes(), self.into)
    }

    /// The listed users in order, each with its relation. Listing a user again is a fault. `find`
    /// returns the part of a listed user.
    pub fn relations<'u>(
        &self,
        find: impl Fn(LocalityId) -> Option<MergedInto<'u>>,
    ) -> Vec<(LocalityId, Listed)> {
        let listed: HashSet<_> = self.listed.iter().copied().collect();
        let mut seen = HashSet::from([self.user]);
        let relation = |id: &LocalityId| match seen.insert(*id) {
            true => (*id, self.relation(*id, &listed, &find)),
            false => (*id, Listed::Separate),
        };
        self.listed.iter().map(relation).collect()
    }

    fn relation<'u>(
        &self,
        id: LocalityId,
        listed: &HashSet<LocalityId>,
        find: &impl Fn(LocalityId) -> Option<MergedInto<'u>>,
    ) -> Listed {
        let Some((tenant, mut into)) = find(id) else { return Listed::Absent };
        if tenant != self.tenant.as_str().as_bytes() {
            return Listed::Foreign;
        }
        for _ in 0..listed.len() {
            match into {
                Some(primary) if primary == self.user => return Listed::Merged,
                Some(primary) if listed.contains(&primary) => match find(primary) {
                    None => return Listed::Waiting,
                    Some((tenant, _)) if tenant != self.tenant.as_str().as_bytes() => break,
                    Some((_, next)) => into = next,
                },
                _ => break,
            }
        }
        Listed::Separate
    }

    /// The user and the users that were merged into it, whose inboxes it has. `find` returns the
    /// part of a listed user.
    ///
    /// # Errors
    /// [`Error::MergeDamaged`] if it lists a user of another tenant.
    pub fn with_merged<'u>(
        &self,
        find: impl Fn(LocalityId) -> Option<MergedInto<'u>>,
    ) -> Result<Vec<LocalityId>, Error> {
        let mut users = vec![self.user];
        for (id, relation) in self.relations(find) {
            match relation {
                Listed::Merged => users.push(id),
                Listed::Foreign => return Err(Error::MergeDamaged { user: self.user }),
                _ => {}
            }
        }
        Ok(users)
    }
}

/// The part of a user in encoded form as a listed user.
pub fn merged_into_of(user: &EncodedUser) -> MergedInto<'_> {
    (user.tenant(), merged_into(user.state()))
}

/// The user into which a user in this state was merged.
pub const fn merged_into(state: State) -> Option<LocalityId> {
    match state {
        State::Merged { into } => Some(into),
        _ => None,
    }
}

/// Whether a snapshot shows the user of this record before its merge, with values that calls can
/// set.
pub fn is_undo_of(record: &Record, undo: &MergeSnapshot) -> bool {
    let before = &undo.before;
    merged_into(record.user.state).is_some()
        && (before.id(), &before.user.tenant) == (record.id(), &record.user.tenant)
        && matches!(before.user.state, State::Active | State::Disabled)
        && before.internals.undo.is_none()
        && undo.check().is_ok()
}

/// The users that were merged into `primary`. Needs the reads of all users that it lists.
///
/// # Errors
/// [`Error::MergeDamaged`] if it lists a user of another tenant.
pub fn merged_users<'v>(
    read_set: &'v ReadSet,
    primary: &Record,
) -> Result<Vec<&'v Record>, DecideError> {
    let links = MergeLinks::from_record(primary);
    read_set.read_users(&links.listed)?;
    let users = links.with_merged(|id| read_set.user(id).map(part_of))?;
    Ok(users[1..].iter().filter_map(|id| read_set.user(*id)).collect())
}

fn part_of(record: &Record) -> MergedInto<'_> {
    (record.user.tenant.as_str().as_bytes(), merged_into(record.user.state))
}

/// The users that a merged user leads to, one merge after the other.
#[derive(Debug)]
pub struct MergeWalk {
    /// The users so far, from the merged one on.
    users: Vec<LocalityId>,
    next: Option<LocalityId>,
}

impl MergeWalk {
    /// The walk from a user, who was merged into `into`.
    pub fn new(user: LocalityId, into: Option<LocalityId>) -> Self {
        Self { users: vec![user], next: into }
    }

    /// The next user; none at the end.
    pub const fn next(&self) -> Option<LocalityId> {
        self.next
    }

    /// Steps on to the next user, who was merged into `into`. Returns false if the walk leads back,
    /// or is too long.
    pub fn step(&mut self, into: Option<LocalityId>) -> bool {
        let next = self.next.filter(|id| !self.users.contains(id));
        self.users.extend(next);
        self.next = into;
        next.is_some() && self.users.len() <= MAX_STEPS
    }

    /// Whether the last user, who lists these users, has all users before it as parts of itself.
    pub fn is_listed_in(&self, listed: &[LocalityId]) -> bool {
        let parts = self.users.split_last().map_or(&[][..], |(_, parts)| parts);
        parts.iter().all(|id| listed.contains(id))
    }
}

/// The user that a merged user leads to, over users of its tenant, and the walk to it. None if the
/// merges lead to no user, to another tenant, or in a circle.
fn walk<'v>(
    read_set: &'v ReadSet,
    merged: &'v Record,
) -> Result<Option<(&'v Record, MergeWalk)>, DecideError> {
    let mut walk = MergeWalk::new(merged.id(), merged_into(merged.user.state));
    let mut last = merged;
    while let Some(into) = walk.next() {
        match read_set.read_user(into)? {
            Some(primary)
                if primary.user.tenant == merged.user.tenant
                    && walk.step(merged_into(primary.user.state)) =>
            {
                last = primary;
            }
            _ => return Ok(None),
        }
    }
    Ok(Some((last, walk)))
}

/// Whether a merged user leads to no user.
pub fn leads_nowhere(read_set: &ReadSet, merged: &Record) -> Result<bool, DecideError> {
    Ok(walk(read_set, merged)?.is_none())
}

/// Whether a user is a merged one, but part of no other: it leads to no user, or to one who does
/// not list it and the users in between.
pub fn is_orphan(read_set: &ReadSet, record: &Record) -> Result<bool, DecideError> {
    let walk = walk(read_set, record)?;
    Ok(walk.is_none_or(|(primary, walk)| !walk.is_listed_in(primary.merged())))
}

/// Rejects a line that names a user who exists and does not name the line's user back. A user who
/// does not exist yet may follow.
pub fn check_import(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<(), DecideError> {
    if !imported.names_others() {
        return Ok(());
    }
    let links = MergeLinks::from_record(&imported.record(id, &mutation.tenant, mutation.now.time));
    if links.has_damaged_undo {
        let message = "is not the user of this line as it was before the merge";
        return Err(Error::invalid(Invalid::UserId, "internals.undo.user", message).into());
    }
    check_listed(read_set, &links)?;
    check_primaries(mutation, read_set, &links)
}

fn check_listed(read_set: &ReadSet, links: &MergeLinks) -> Result<(), DecideError> {
    let invalid = |n: usize, message: &str| {
        let field = format!("internals.merged_user_ids[{n}]");
        Err(Error::invalid(Invalid::UserId, field, message).into())
    };
    let mut seen = HashSet::from([links.user]);
    for (n, id) in links.listed.iter().enumerate() {
        if !seen.insert(*id) || links.into == Some(*id) {
            return invalid(n, "is this user itself, its primary, or listed twice");
        }
    }
    read_set.read_users(&links.listed)?;
    let relations = links.relations(|id| read_set.user(id).map(part_of));
    for (n, (_, relation)) in relations.into_iter().enumerate() {
        match relation {
            Listed::Absent | Listed::Waiting | Listed::Merged => {}
            Listed::Separate | Listed::Foreign => {
                return invalid(n, "names a user who was not merged into this one");
            }
        }
    }
    Ok(())
}

fn check_primaries(
    mutation: &Mutation,
    read_set: &ReadSet,
    links: &MergeLinks,
) -> Result<(), DecideError> {
    let invalid =
        |message: &str| Err(Error::invalid(Invalid::UserId, "user.merged_into", message).into());
    let mut walk = MergeWalk::new(links.user, links.into);
    while let Some(id) = walk.next() {
        let found = read_set.read_user(id)?.filter(|_| id != links.user);
        let into = found.and_then(|primary| merged_into(primary.user.state));
        if !walk.step(into) {
            return invalid("leads back to the user itself, over one merge or several");
        }
        let Some(primary) = found else { return Ok(()) };
        if primary.user.tenant != mutation.tenant || !primary.merged().contains(&links.user) {
            return invalid("names a user who does not list this one as merged into it");
        }
    }
    Ok(())
}

/// Removes from a user's record what names users that it is not merged with.
pub fn remove_faults(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
) -> Result<WriteSet, DecideError> {
    let own = read_set.read_user(id)?.filter(|record| record.user.tenant == mutation.tenant);
    let Some(before) = own else { return Ok(WriteSet::unchanged(None)) };
    let links = MergeLinks::from_record(before);
    read_set.read_users(&links.listed)?;
    let mut after = before.clone();
    let relations = links.relations(|id| read_set.user(id).map(part_of)).into_iter();
    let kept = relations.filter(|(_, relation)| !relation.is_fault()).map(|(id, _)| id);
    after.internals.merged = kept.collect();
    if links.has_damaged_undo {
        after.internals.undo = None;
    }
    plan_writes(mutation, read_set, vec![UserTransition::new(before, after)], ClaimDiff::new())
}

impl Listed {
    /// Whether the user must not be listed.
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::Separate | Self::Foreign)
    }
}
