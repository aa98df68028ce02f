//! Moving an identity from one user to another in one step, so that nobody else can take it in between.

use super::settle::{Changes, Transition, settle};
use super::view::Stop;
use super::{Effects, Error, Identity, Invalid, Mutation, View, change};
use crate::identifier::Identifier;
use crate::locality::LocalityId;

/// Takes an identity from the user `from` and gives it to the mutation's user. It stays verified, and is the primary one of
/// its kind only where that user has no other.
pub fn transfer(mutation: &Mutation, view: &View, from: LocalityId, identifier: &Identifier) -> Result<Effects, Stop> {
    if from == mutation.user_id {
        let message = "is the user who gets the identity";
        return Err(Error::invalid(Invalid::UserId, "from_user_id", message).into());
    }

    let to = mutation.subject(view)?;
    let from = mutation.changeable(view, from)?;
    let (mut gives, mut takes) = (from.clone(), to.clone());
    let (identity, guarded) = change::give_up(mutation, &mut gives, identifier)?;
    let link_time = mutation.time.after(to.user.update_time);
    takes.give(Identity { primary: false, link_time, ..identity }, guarded);

    let transitions = vec![Transition::new(to, takes), Transition::new(from, gives)];
    settle(mutation, view, transitions, Changes::new())
}
