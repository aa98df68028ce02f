//! Merging one user, the secondary, into another, the primary, and undoing that: the secondary
//! becomes a separate user again, with its former identities and data that the primary still has.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::{Mutation, hold, merge_links};
use crate::error::{Error, Invalid};
use crate::model::attribute::Value;
use crate::model::claim::Claim;
use crate::model::merge_report::{Conflict, ConflictPolicy, NotRestored, Preview};
use crate::model::record::{Hold, MergeSnapshot, Record, UserInternals};
use crate::model::user::{Identity, State, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, check_limits, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use polynym_identifier::Kind;

/// Merges `secondary` into `primary`.
pub fn merge(
    mutation: &Mutation,
    read_set: &ReadSet,
    primary: LocalityId,
    secondary: LocalityId,
    policy: ConflictPolicy,
) -> Result<WriteSet, DecideError> {
    if secondary == primary {
        let message = "a user cannot be merged with itself";
        return Err(Error::invalid(Invalid::UserId, "secondary_user_id", message).into());
    }

    let primary = mutation.subject(read_set, primary)?;
    let secondary = mutation.changeable(read_set, secondary)?;
    merge_links::merged_users(read_set, secondary)?;
    let held = hold::held(mutation, read_set, secondary, &secondary.internals.holds)?;
    let mut merger = Merger::new(mutation, primary, secondary, policy);
    merger.merge();
    let Merger { mut after, merged, conflicts, moved, .. } = merger;
    after.internals.holds.retain(|hold| !mutation.is_past(hold.until));
    after
        .internals
        .holds
        .extend(held.iter().filter_map(|(key, claim)| Hold::from_claim(key, claim)));
    if policy == ConflictPolicy::Fail && !conflicts.is_empty() {
        let fields = conflicts.into_iter().map(|conflict| conflict.field).collect();
        return Err(Error::MergeConflict { fields }.into());
    }

    let owner = Some(primary.id());
    let moves = held
        .into_iter()
        .map(|(key, claim)| (key, (Some(claim.clone()), Some(Claim { owner, ..claim.clone() }))));
    let transitions =
        vec![UserTransition::new(primary, after), UserTransition::new(secondary, merged)];
    let write_set = plan_writes(mutation, read_set, transitions, moves.collect::<ClaimDiff>())?;
    if !mutation.dry_run {
        return Ok(write_set);
    }

    let report = match write_set.user(primary.id()).cloned() {
        Some(result) => MutationReport::Preview(Box::new(Preview { moved, conflicts, result })),
        None => MutationReport::Nothing,
    };
    Ok(WriteSet { report, ..write_set })
}

/// A merge in progress.
struct Merger<'v> {
    primary: &'v Record,
    secondary: &'v Record,
    policy: ConflictPolicy,
    /// The primary after the merge.
    after: Record,
    /// The secondary after the merge.
    merged: Record,
    moved: Vec<Identity>,
    conflicts: Vec<Conflict>,
}

impl<'v> Merger<'v> {
    fn new(
        mutation: &Mutation,
        primary: &'v Record,
        secondary: &'v Record,
        policy: ConflictPolicy,
    ) -> Self {
        let until = mutation.now.time.plus(mutation.policies.undo_window);
        let snapshot = MergeSnapshot {
            until,
            before: secondary.clone(),
            display_name: None,
            attributes: BTreeMap::new(),
            unmarked: Vec::new(),
        };
        let user = User {
            state: State::Merged { into: primary.id() },
            display_name: String::new(),
            identities: Vec::new(),
            attributes: BTreeMap::new(),
            ..secondary.user.clone()
        };
        let internals = UserInternals {
            merged: secondary.internals.merged.clone(),
            undo: (until > mutation.now.time).then(|| Box::new(snapshot)),
            unknown: secondary.internals.unknown.clone(),
            ..UserInternals::default()
        };
        let (after, merged) = (primary.clone(), Record { user, internals });

        Self { primary, secondary, policy, after, merged, moved: Vec::new(), conflicts: Vec::new() }
    }

    fn merge(&mut self) {
        self.merge_name();
        self.merge_attributes();
        self.moved.clone_from(&self.secondary.user.identities);
        Kind::ALL.into_iter().for_each(|kind| self.merge_primary(kind));
        self.after.user.identities.extend(self.moved.iter().cloned());
        let (after, secondary) = (&mut self.after.internals, &self.secondary.internals);
        after.guards.extend(secondary.guards.iter().cloned());
        // An import may have listed some of them before.
        let merged = std::iter::once(self.secondary.id()).chain(secondary.merged.iter().copied());
        let is_new = |id: &LocalityId| !after.merged.contains(id) && *id != self.primary.id();
        let new: Vec<_> = merged.filter(is_new).collect();
        after.merged.extend(new);
    }

    fn merge_name(&mut self) {
        let value =
            |name: &String| Some(name).filter(|name| !name.is_empty()).cloned().map(Value::String);
        let (primary, secondary) =
            (&self.primary.user.display_name, &self.secondary.user.display_name);
        let Some(other) = value(secondary) else { return };
        if self.secondary_wins("display_name", value(primary), &other) {
            self.after.user.display_name.clone_from(secondary);
            let change = (primary.clone(), secondary.clone());
            self.update_snapshot(|snapshot| snapshot.display_name = Some(change));
        }
    }

    fn merge_attributes(&mut self) {
        for (name, value) in &self.secondary.user.attributes {
            let own = self.primary.user.attributes.get(name);
            if self.secondary_wins(&format!("attributes.{name}"), own.cloned(), value) {
                self.after.user.attributes.insert(name.clone(), value.clone());
                let change = (own.cloned(), value.clone());
                self.update_snapshot(|snapshot| {
                    snapshot.attributes.insert(name.clone(), change);
                });
            }
        }
    }

    /// If both users have a primary identity of a kind, one of the two loses the mark.
    fn merge_primary(&mut self, kind: Kind) {
        let marked = (self.primary.user.primary(kind), self.secondary.user.primary(kind));
        let (Some(own), Some(other)) = marked else { return };
        let value = |identity: &Identity| Value::String(identity.identifier.to_string());
        let wins = self.secondary_wins(&format!("primary.{kind}"), Some(value(own)), &value(other));
        let identities = if wins { &mut self.after.user.identities } else { &mut self.moved };
        for identity in identities.iter_mut().filter(|identity| identity.identifier.kind() == kind)
        {
            identity.primary = false;
        }

        if wins {
            self.update_snapshot(|snapshot| snapshot.unmarked.push(own.identifier.clone()));
        }
    }

    /// Whether the secondary's value replaces the primary's. Records a conflict if they differ.
    fn secondary_wins(&mut self, field: &str, own: Option<Value>, other: &Value) -> bool {
        let Some(own) = own else { return true };
        if own == *other {
            return false;
        }
        let wins = self.policy == ConflictPolicy::SecondaryWins;
        let (kept, dropped) = if wins { (other.clone(), own) } else { (own, other.clone()) };
        self.conflicts.push(Conflict { field: field.to_owned(), kept, dropped });
        wins
    }

    fn update_snapshot(&mut self, update: impl FnOnce(&mut MergeSnapshot)) {
        if let Some(snapshot) = &mut self.merged.internals.undo {
            update(snapshot);
        }
    }
}

/// Separates `secondary` from `primary`. The answer is about the secondary.
pub fn unmerge(
    mutation: &Mutation,
    read_set: &ReadSet,
    primary: LocalityId,
    secondary: LocalityId,
) -> Result<WriteSet, DecideError> {
    let primary = mutation.subject(read_set, primary)?;
    let merged = mutation.present(read_set, secondary)?;
    let names_primary = merged.user.state == (State::Merged { into: primary.id() });
    if !names_primary || !primary.merged().contains(&secondary) {
        return Err(Error::NotMerged.into());
    }

    let snapshot = merged
        .internals
        .undo
        .as_deref()
        .filter(|snapshot| !mutation.is_past(snapshot.until))
        .ok_or(Error::UndoExpired)?;
    if !merge_links::is_undo_of(merged, snapshot) {
        return Err(Error::MergeDamaged { user: secondary }.into());
    }
    let indirect: Vec<_> =
        merge_links::merged_users(read_set, merged)?.into_iter().map(Record::id).collect();
    let (mut after, mut restored) = (primary.clone(), snapshot.before.clone());
    let mut not_restored = Vec::new();
    restore_identities(&mut after, &mut restored, &mut not_restored);
    restore_fields(&mut after, snapshot, &mut not_restored);
    let holds = &snapshot.before.internals.holds;
    let mut held = hold::held(mutation, read_set, primary, holds)?;
    held.retain(|(key, claim)| {
        holds.iter().any(|hold| hold.key == *key && Some(hold.until) == claim.hold)
    });
    let is_held = |hold: &Hold| held.iter().any(|(key, _)| *key == hold.key);
    restored.internals.holds.retain(is_held);
    after.internals.holds.retain(|hold| !is_held(hold));
    after.internals.merged.retain(|id| *id != secondary && !indirect.contains(id));
    restored.internals.merged.clone_from(&merged.internals.merged);
    restored.internals.not_restored.clone_from(&not_restored);
    let owner = Some(secondary);
    let moves = held
        .into_iter()
        .map(|(key, claim)| (key, (Some(claim.clone()), Some(Claim { owner, ..claim.clone() }))));
    let transitions =
        vec![UserTransition::new(primary, after), UserTransition::new(merged, restored)];
    check_limits(mutation, &transitions[1])?;
    let write_set = plan_writes(mutation, read_set, transitions, moves.collect::<ClaimDiff>())?;

    Ok(WriteSet {
        subject: Some(secondary),
        unchanged: None,
        report: MutationReport::NotRestored(not_restored),
        ..write_set
    })
}

/// Moves the identities back, unchanged but for their former primary marks.
fn restore_identities(
    after: &mut Record,
    restored: &mut Record,
    not_restored: &mut Vec<NotRestored>,
) {
    restored.internals.guards.clear();
    for had in std::mem::take(&mut restored.user.identities) {
        match after.user.identities.iter().position(|identity| {
            (&identity.identifier, identity.link_time) == (&had.identifier, had.link_time)
        }) {
            None => not_restored.push(NotRestored::Identity(had.identifier)),
            Some(n) => {
                let (mut identity, guarded) = after.remove_identity(n);
                identity.primary = had.primary;
                restored.add_identity(identity, guarded);
            }
        }
    }
}

/// Restores the fields of the primary that the merge changed, unless they have changed since.
fn restore_fields(
    after: &mut Record,
    snapshot: &MergeSnapshot,
    not_restored: &mut Vec<NotRestored>,
) {
    let user = &mut after.user;
    match &snapshot.display_name {
        Some((before, set)) if user.display_name == *set => user.display_name.clone_from(before),
        Some(_) => not_restored.push(NotRestored::DisplayName),
        None => {}
    }

    for (name, (before, set)) in &snapshot.attributes {
        if user.attributes.get(name) != Some(set) {
            not_restored.push(NotRestored::Attribute(name.clone()));
        } else if let Some(before) = before {
            user.attributes.insert(name.clone(), before.clone());
        } else {
            user.attributes.remove(name);
        }
    }

    for identifier in &snapshot.unmarked {
        if user.identity(identifier).is_some() && user.primary(identifier.kind()).is_none() {
            user.make_primary(identifier);
        }
    }
}
