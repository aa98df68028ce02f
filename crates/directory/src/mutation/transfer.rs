//! Moving an identity between users in one step, so that no third user can take it in between.

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::error::{Error, Invalid};
use crate::model::user::Identity;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, ReadSet, WriteSet};
use polynym_identifier::Identifier;

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
    let link_time = mutation.time.after(to.user.update_time);
    let moved = Identity { primary: false, link_time, import_time: None, ..identity };
    receiver.add_identity(moved, guarded);

    let transitions = vec![UserTransition::new(to, receiver), UserTransition::new(from, giver)];

    plan_writes(mutation, read_set, transitions, ClaimDiff::new())
}
