//! Verified identities that win over others which are not, where the tenant wants that.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::error::Error;
use crate::model::new_user::NewIdentity;
use crate::model::record::Record;
use crate::mutation::claim_diff;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition};
use crate::mutation::read_set::{DecideError, ReadSet, ReadState, Takeover, WriteSet};

/// Settles the transition of a user who takes the identities of `drafts`: from other users, too,
/// where theirs are not verified.
pub fn plan_writes(
    mutation: &Mutation,
    read_set: &ReadSet,
    transition: UserTransition<'_>,
    drafts: &[NewIdentity],
) -> Result<WriteSet, DecideError> {
    let mut losers = BTreeMap::new();
    if mutation.policies.verified_wins {
        for draft in drafts.iter().filter(|draft| draft.verification.is_some()) {
            takeover(mutation, read_set, draft, &mut losers)?;
        }
    }

    let takeover = |loser: &LocalityId| {
        let winner = mutation.user_id()?;
        Some(Takeover { winner, loser: *loser })
    };
    let takeovers = losers.keys().filter_map(takeover).collect();
    let lost = losers.into_values().map(|(before, after)| UserTransition::new(before, after));
    let transitions = std::iter::once(transition).chain(lost).collect();
    let write_set = claim_diff::plan_writes(mutation, read_set, transitions, ClaimDiff::new())?;

    Ok(WriteSet { takeovers, ..write_set })
}

/// Users who lose something, as they were and as they will be.
type Losers<'v> = BTreeMap<LocalityId, (&'v Record, Record)>;

fn takeover<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    draft: &NewIdentity,
    losers: &mut Losers<'v>,
) -> Result<(), DecideError> {
    let ReadState::There(claim) =
        read_set.claim(&mutation.key(&draft.identifier), mutation.dry_run)
    else {
        return Ok(());
    };
    let Some(owner) = claim.resolves_to() else { return Ok(()) };
    let before =
        read_set.read_user(owner)?.ok_or_else(|| Error::Internal("a claim of nobody".into()))?;
    let (_, after) = losers.entry(owner).or_insert_with(|| (before, before.clone()));
    let unlisted = |_| Error::Internal("a claim of a user who does not list it".into());
    let n = user_edits::position(&after.user, &draft.identifier).map_err(unlisted)?;
    if after.user.identities[n].verification.is_none() {
        after.take(n);
    }

    Ok(())
}
