//! Undoing a merge: the secondary becomes a separate user again, with its former identities and
//! data that the primary still has.

use locality_uuid::LocalityId;

use super::{Mutation, hold, merge_links};
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::merge_report::NotRestored;
use crate::model::record::{Hold, MergeSnapshot, Record};
use crate::model::user::State;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, check_limits, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};

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
