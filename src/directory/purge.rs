//! Removing users for good, and what happens to users by itself when its time comes.

use super::settle::{Changes, Transition, settle};
use super::view::Stop;
use super::{Claim, Effects, Mutation, Record, Report, State, View};

/// Removes a user and all that is kept of it, and the users that were merged into it. What it owned is held for nobody,
/// where the tenant's policy holds it; what was held for it stays held for nobody.
pub fn purge(mutation: &Mutation, view: &View, record: &Record) -> Result<Effects, Stop> {
    let is_merged = |other: &&Record| matches!(other.user.state, State::Merged { .. });
    let merged = view.read_users(&record.private.merged)?.into_iter().filter(is_merged);
    let holds = view.read_claims(record.private.holds.iter().map(|hold| hold.key.clone()).collect())?;
    let holds = holds.into_iter().filter(|(_, claim)| claim.owner == Some(record.id()) && claim.hold.is_some());
    let reserved = holds.map(|(key, claim)| (key, (Some(claim.clone()), Some(Claim { owner: None, ..claim.clone() }))));
    let removed = |record| Transition { before: Some(record), after: None };
    let transitions: Vec<_> = std::iter::once(record).chain(merged).map(removed).collect();
    let effects = settle(mutation, view, transitions, reserved.collect::<Changes>())?;
    let report = Report::Purged(effects.removed.clone());
    Ok(Effects { report, ..effects })
}

/// Purges a user whose time is over, or forgets how to undo a merge that can be undone no longer.
pub fn tend(mutation: &Mutation, view: &View) -> Result<Effects, Stop> {
    let is_due = |record: &&Record| {
        record.user.tenant == mutation.tenant && record.due().is_some_and(|due| mutation.is_past(due))
    };
    let Some(before) = view.read_user(mutation.user_id)?.filter(is_due) else {
        return Ok(Effects::nothing(mutation.user_id));
    };
    if matches!(before.user.state, State::Deleted { .. }) {
        return purge(mutation, view, before);
    }
    let mut after = before.clone();
    after.private.undo = None;
    settle(mutation, view, vec![Transition::new(before, after)], Changes::new())
}
