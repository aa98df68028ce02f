//! Identities that go from one user to another, in one step: moves, and takeovers, by which a
//! verified identity goes from another user, who has not verified it or not lately, if the
//! policies allow it.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::error::{Error, Invalid};
use crate::model::new_user::NewIdentity;
use crate::model::ownership::Takeover;
use crate::model::record::Record;
use crate::model::user::{Identity, Verification};
use crate::mutation::claim_diff;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition};
use crate::mutation::read_set::{DecideError, ReadSet, ReadState, WriteSet};
use polynym_identifier::Identifier;

/// The write set of a user who links `new_identities`, including those taken over from others.
pub fn plan_writes(
    mutation: &Mutation,
    read_set: &ReadSet,
    transition: UserTransition<'_>,
    new_identities: &[NewIdentity],
) -> Result<WriteSet, DecideError> {
    let mut losers = BTreeMap::new();
    for new in new_identities {
        let allowed = mutation.policies.allows_takeover(new.identifier.kind());
        if let Some(verification) = new.verification.as_ref().filter(|_| allowed) {
            takeover(mutation, read_set, (&new.identifier, verification), &mut losers)?;
        }
    }

    let winner = mutation.user_id();
    let takeovers = losers
        .keys()
        .filter_map(|loser| Some(Takeover { winner: winner?, loser: *loser }))
        .collect();
    let lost = losers.into_values().map(|(before, after)| UserTransition::new(before, after));
    let transitions = std::iter::once(transition).chain(lost).collect();
    let write_set = claim_diff::plan_writes(mutation, read_set, transitions, ClaimDiff::new())?;

    Ok(WriteSet { takeovers, ..write_set })
}

/// Users who lose identities, before and after.
type Losers<'v> = BTreeMap<LocalityId, (&'v Record, Record)>;

fn takeover<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    (identifier, verification): (&Identifier, &Verification),
    losers: &mut Losers<'v>,
) -> Result<(), DecideError> {
    let ReadState::Present(claim) = read_set.claim(&mutation.key(identifier), mutation.dry_run)
    else {
        return Ok(());
    };
    let Some(owner) = claim.resolves_to() else { return Ok(()) };
    let before = read_set
        .read_user(owner)?
        .ok_or_else(|| Error::Internal("a claim without its owner".into()))?;
    let (_, after) = losers.entry(owner).or_insert_with(|| (before, before.clone()));
    let unlisted = |_| Error::Internal("a claim of a user who does not list it".into());
    let n = user_edits::position(&after.user, identifier).map_err(unlisted)?;
    let own = &after.user.identities[n];
    if mutation.policies.yields(own, verification, mutation.now) {
        after.remove_identity(n);
    }

    Ok(())
}

/// Moves an identity from the user `from` to the user `to`. It keeps its verification, and becomes
/// primary only if the receiver has no other of its kind.
pub fn transfer(
    mutation: &Mutation,
    read_set: &ReadSet,
    to: LocalityId,
    from: LocalityId,
    identifier: &Identifier,
) -> Result<WriteSet, DecideError> {
    if from == to {
        let message = "is the user who gets the identity";
        return Err(Error::invalid(Invalid::UserId, "from_user_id", message).into());
    }

    let to = mutation.subject(read_set, to)?;
    let from = mutation.changeable(read_set, from)?;
    let (mut giver, mut receiver) = (from.clone(), to.clone());
    let (identity, guarded) = user_edits::unlink(mutation, &mut giver, identifier)?;
    let link_time = mutation.now.time.after(to.user.update_time);
    let moved = Identity { primary: false, link_time, import_time: None, ..identity };
    receiver.add_identity(moved, guarded);

    let transitions = vec![UserTransition::new(to, receiver), UserTransition::new(from, giver)];

    claim_diff::plan_writes(mutation, read_set, transitions, ClaimDiff::new())
}
