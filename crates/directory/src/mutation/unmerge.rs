//! Undoing a merge: the secondary becomes a user of its own again, with what it had, as far as the
//! primary still has it.

use locality_uuid::LocalityId;

use super::{Mutation, hold};
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::merge_report::NotRestored;
use crate::model::record::{MergeSnapshot, Record};
use crate::model::user::State;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};

/// Takes `secondary` out of `primary`. The answer is about the secondary.
pub fn unmerge(
    mutation: &Mutation,
    read_set: &ReadSet,
    primary: LocalityId,
    secondary: LocalityId,
) -> Result<WriteSet, DecideError> {
    let primary = mutation.subject(read_set, primary)?;
    let merged = mutation.present(read_set, secondary)?;
    if merged.user.state != (State::Merged { into: primary.id() }) {
        return Err(Error::NotMerged.into());
    }

    let undo = merged.private.undo.as_deref().filter(|undo| !mutation.is_past(undo.until));
    let undo = undo.ok_or(Error::UndoExpired)?;
    let (mut after, mut restored) = (primary.clone(), undo.before.clone());
    let mut not_restored = Vec::new();
    give_back_identities(&mut after, &mut restored, &mut not_restored);
    give_back_fields(&mut after, undo, &mut not_restored);
    let mut held = hold::held(mutation, read_set, primary, &undo.before.private.holds)?;
    held.retain(|(key, claim)| {
        undo.before
            .private
            .holds
            .iter()
            .any(|hold| hold.key == *key && Some(hold.until) == claim.hold)
    });
    restored.private.holds.retain(|hold| held.iter().any(|(key, _)| *key == hold.key));
    after
        .private
        .holds
        .retain(|hold| restored.private.holds.iter().all(|other| other.key != hold.key));
    after.private.merged.retain(|id| *id != secondary && !restored.private.merged.contains(id));
    restored.private.not_restored.clone_from(&not_restored);
    let owner = Some(secondary);
    let moves = held
        .into_iter()
        .map(|(key, claim)| (key, (Some(claim.clone()), Some(Claim { owner, ..claim.clone() }))));
    let transitions =
        vec![UserTransition::new(primary, after), UserTransition::new(merged, restored)];
    let write_set = plan_writes(mutation, read_set, transitions, moves.collect::<ClaimDiff>())?;

    Ok(WriteSet {
        subject: Some(secondary),
        unchanged: None,
        report: MutationReport::NotRestored(not_restored),
        ..write_set
    })
}

/// An identity goes back as it is now, but for the mark that it had.
fn give_back_identities(
    after: &mut Record,
    restored: &mut Record,
    not_restored: &mut Vec<NotRestored>,
) {
    restored.private.guards.clear();
    for had in std::mem::take(&mut restored.user.identities) {
        let is = |identity: &crate::model::user::Identity| {
            (&identity.identifier, identity.link_time) == (&had.identifier, had.link_time)
        };
        match after.user.identities.iter().position(is) {
            None => not_restored.push(NotRestored::Identity(had.identifier)),
            Some(n) => {
                let (mut identity, guarded) = after.take(n);
                identity.primary = had.primary;
                restored.give(identity, guarded);
            }
        }
    }
}

/// Restores the fields of the primary that the merge changed and that were not changed since.
fn give_back_fields(after: &mut Record, undo: &MergeSnapshot, not_restored: &mut Vec<NotRestored>) {
    let user = &mut after.user;
    match &undo.display_name {
        Some((before, set)) if user.display_name == *set => user.display_name.clone_from(before),
        Some(_) => not_restored.push(NotRestored::DisplayName),
        None => {}
    }

    for (name, (before, set)) in &undo.attributes {
        if user.attributes.get(name) != Some(set) {
            not_restored.push(NotRestored::Attribute(name.clone()));
        } else if let Some(before) = before {
            user.attributes.insert(name.clone(), before.clone());
        } else {
            user.attributes.remove(name);
        }
    }

    for identifier in &undo.unmarked {
        if user.identity(identifier).is_some() && user.primary(identifier.kind()).is_none() {
            user.mark(identifier);
        }
    }
}
