//! Merging one user, the secondary, into another, the primary.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::{Mutation, hold, merge_links};
use crate::error::{Error, Invalid};
use crate::model::attribute::Value;
use crate::model::claim::Claim;
use crate::model::merge_report::{Conflict, ConflictPolicy, Preview};
use crate::model::record::{Hold, MergeSnapshot, Record, UserInternals};
use crate::model::user::{Identity, State, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
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
    after.internals.holds.extend(held.iter().filter_map(|(key, claim)| Hold::of(key, claim)));
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
        let until = mutation.time.plus(mutation.policies.undo_window);
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
            undo: (until > mutation.time).then(|| Box::new(snapshot)),
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
