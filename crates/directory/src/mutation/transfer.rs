//! Moves an identity from one user to another in one step, so that it cannot be taken in between.

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::error::{Error, Invalid};
use crate::model::user::Identity;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, ReadSet, WriteSet};
use polynym_identifier::Identifier;

/// Takes an identity from the user `from` and gives it to the user `to`. It stays verified,
/// and is the primary one of its kind only where that user has no other.
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
    let (mut gives, mut takes) = (from.clone(), to.clone());
    let (identity, guarded) = user_edits::give_up(mutation, &mut gives, identifier)?;
    let link_time = mutation.time.after(to.user.update_time);
    takes.give(Identity { primary: false, link_time, ..identity }, guarded);

    let transitions = vec![UserTransition::new(to, takes), UserTransition::new(from, gives)];

    plan_writes(mutation, read_set, transitions, ClaimDiff::new())
}
