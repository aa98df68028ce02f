//! Merging: one user, the secondary, becomes part of another, the primary.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::{Mutation, hold};
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
    let held = hold::held(mutation, read_set, secondary, &secondary.private.holds)?;
    let mut merger = Merger::new(mutation, primary, secondary, policy);
    merger.merge();
    let Merger { mut after, gone, conflicts, moved, .. } = merger;
    after.private.holds.retain(|hold| !mutation.is_past(hold.until));
    after.private.holds.extend(held.iter().filter_map(|(key, claim)| Hold::of(key, claim)));
    if policy == ConflictPolicy::Fail && !conflicts.is_empty() {
        let fields = conflicts.into_iter().map(|conflict| conflict.field).collect();
        return Err(Error::MergeConflict { fields }.into());
    }

    let owner = Some(primary.id());
    let moves = held
        .into_iter()
        .map(|(key, claim)| (key, (Some(claim.clone()), Some(Claim { owner, ..claim.clone() }))));
    let transitions =
        vec![UserTransition::new(primary, after), UserTransition::new(secondary, gone)];
    let write_set = plan_writes(mutation, read_set, transitions, moves.collect::<ClaimDiff>())?;
    if !mutation.dry_run {
        return Ok(write_set);
    }

    let preview = |result| MutationReport::Preview(Box::new(Preview { moved, conflicts, result }));
    let report = write_set.user(primary.id()).cloned().map_or(MutationReport::Nothing, preview);
    Ok(WriteSet { report, ..write_set })
}

/// A merge under way.
struct Merger<'v> {
    primary: &'v Record,
    secondary: &'v Record,
    policy: ConflictPolicy,
    /// The primary as it will be.
    after: Record,
    /// The secondary after the merge.
    gone: Record,
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
        let undo = MergeSnapshot {
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
        let merged = secondary.private.merged.clone();
        let undo = (until > mutation.time).then(|| Box::new(undo));
        let unknown = secondary.private.unknown.clone();
        let private = UserInternals { merged, undo, unknown, ..UserInternals::default() };
        let gone = Record { user, private };
        let after = primary.clone();

        Self { primary, secondary, policy, after, gone, moved: Vec::new(), conflicts: Vec::new() }
    }

    fn merge(&mut self) {
        self.merge_name();
        self.merge_attributes();
        self.moved.clone_from(&self.secondary.user.identities);
        Kind::ALL.into_iter().for_each(|kind| self.merge_mark(kind));
        self.after.user.identities.extend(self.moved.iter().cloned());
        let (after, secondary) = (&mut self.after.private, &self.secondary.private);
        after.guards.extend(secondary.guards.iter().cloned());
        after.merged.push(self.secondary.id());
        after.merged.extend(&secondary.merged);
    }

    fn merge_name(&mut self) {
        let value =
            |name: &String| Some(name).filter(|name| !name.is_empty()).cloned().map(Value::String);
        let (primary, secondary) =
            (&self.primary.user.display_name, &self.secondary.user.display_name);
        let Some(other) = value(secondary) else { return };
        if self.takes("display_name", value(primary), &other) {
            self.after.user.display_name.clone_from(secondary);
            let change = (primary.clone(), secondary.clone());
            self.note(|undo| undo.display_name = Some(change));
        }
    }

    fn merge_attributes(&mut self) {
        for (name, value) in &self.secondary.user.attributes {
            let own = self.primary.user.attributes.get(name);
            if self.takes(&format!("attributes.{name}"), own.cloned(), value) {
                self.after.user.attributes.insert(name.clone(), value.clone());
                self.note(|undo| {
                    drop(undo.attributes.insert(name.clone(), (own.cloned(), value.clone())))
                });
            }
        }
    }

    /// Two users have a primary identity of a kind each: one of the two becomes an identity like
    /// others.
    fn merge_mark(&mut self, kind: Kind) {
        let marks = (self.primary.user.primary(kind), self.secondary.user.primary(kind));
        let (Some(own), Some(other)) = marks else { return };
        let value = |identity: &Identity| Value::String(identity.identifier.to_string());
        let takes = self.takes(&format!("primary.{kind}"), Some(value(own)), &value(other));
        let identities = if takes { &mut self.after.user.identities } else { &mut self.moved };
        for identity in identities.iter_mut().filter(|identity| identity.identifier.kind() == kind)
        {
            identity.primary = false;
        }

        if takes {
            self.note(|undo| undo.unmarked.push(own.identifier.clone()));
        }
    }

    /// Whether the primary gets the secondary's value in the place of its own.
    fn takes(&mut self, field: &str, own: Option<Value>, other: &Value) -> bool {
        let Some(own) = own else { return true };
        if own == *other {
            return false;
        }
        let takes = self.policy == ConflictPolicy::SecondaryWins;
        let (kept, dropped) = if takes { (other.clone(), own) } else { (own, other.clone()) };
        self.conflicts.push(Conflict { field: field.to_owned(), kept, dropped });
        takes
    }

    fn note(&mut self, note: impl FnOnce(&mut MergeSnapshot)) {
        if let Some(undo) = &mut self.gone.private.undo {
            note(undo);
        }
    }
}
