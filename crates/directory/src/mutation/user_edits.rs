//! The effect of a change on one user. [`claim_diff`](crate::mutation::claim_diff)
//! derives its claims.

use super::{Mutation, UserChange};
use crate::error::Error;
use crate::model::new_user::NewIdentity;
use crate::model::record::{Guarded, Record};
use crate::model::user::{Identity, State, User};
use crate::timestamp::Timestamp;
use polynym_identifier::Identifier;

/// Applies a change to this user. Changes with their own modules have no effect here.
pub fn apply(mutation: &Mutation, change: &UserChange, record: &mut Record) -> Result<(), Error> {
    let user = &mut record.user;
    match change {
        UserChange::Update(update) => {
            mutation.policies.check_types(update.values())?;
            update.apply(user);
        }
        UserChange::Link(new) => link(mutation, record, new, |time| new.identity(time)),
        UserChange::Unlink(identifier) => drop(unlink(mutation, record, identifier)?),
        UserChange::Replace(old, new) => replace(mutation, record, old, new)?,
        UserChange::Verify(identifier, verification) => {
            let n = position(user, identifier)?;
            user.identities[n].verification.clone_from(verification);
        }
        UserChange::Disable => user.state = State::Disabled,
        UserChange::Enable => user.state = State::Active,
        UserChange::Delete => delete(mutation, record),
        UserChange::Undelete => {
            let disabled = std::mem::take(&mut record.internals.disabled);
            user.state = if disabled { State::Disabled } else { State::Active };
        }
        UserChange::Create(_)
        | UserChange::Import(_)
        | UserChange::Purge
        | UserChange::Merge(..)
        | UserChange::Unmerge(_)
        | UserChange::Move(..)
        | UserChange::Expire
        | UserChange::Renormalize(_)
        | UserChange::Reindex
        | UserChange::Revert(_)
        | UserChange::RemoveMergeFaults => {}
    }

    Ok(())
}

/// The position of the identity in the user's list.
pub fn position(user: &User, identifier: &Identifier) -> Result<usize, Error> {
    let position = user.identities.iter().position(|identity| identity.identifier == *identifier);
    position.ok_or(Error::NotOwned)
}

/// Links an identity, which is `identity` at the time of the mutation. One that the user has gets
/// the verification that it lacks, the name of an account, and the primary mark.
pub fn link(
    mutation: &Mutation,
    record: &mut Record,
    new: &NewIdentity,
    identity: impl FnOnce(Timestamp) -> Identity,
) {
    let time = mutation.now.time.after(record.user.update_time);
    let identities = &mut record.user.identities;
    match identities.iter_mut().find(|identity| identity.identifier == new.identifier) {
        None => {
            identities.push(identity(time));
            record.guard(&new.identifier, &mutation.policies);
        }
        Some(identity) => {
            if identity.verification.is_none() {
                identity.verification.clone_from(&new.verification);
            }
            if new.has_name() {
                identity.display.clone_from(&new.display);
            }
        }
    }

    if new.primary {
        record.user.make_primary(&new.identifier);
    }
}

/// Removes an identity, with its guard, if the tenant's policies allow it.
pub fn unlink(
    mutation: &Mutation,
    record: &mut Record,
    identifier: &Identifier,
) -> Result<(Identity, Option<Guarded>), Error> {
    let n = position(&record.user, identifier)?;
    let identities = &record.user.identities;
    if mutation.policies.keep_last && identities.len() == 1 {
        return Err(Error::LastIdentity);
    }
    check_primary(mutation, record, n)?;
    Ok(record.remove_identity(n))
}

/// Rejects the removal of a primary identity if the policies keep it and the user has others of its
/// kind.
fn check_primary(mutation: &Mutation, record: &Record, n: usize) -> Result<(), Error> {
    let identities = &record.user.identities;
    let kind = identities[n].identifier.kind();
    let same = identities.iter().filter(|identity| identity.identifier.kind() == kind).count();
    let must_stay = mutation.policies.keep_primary && identities[n].primary && same > 1;
    if must_stay { Err(Error::PrimaryIdentity) } else { Ok(()) }
}

/// The new identity takes the old one's position in the list, and its primary mark if both have one
/// kind. An identity that the user already has keeps its position. If only the spelling differs,
/// only the display changes.
fn replace(
    mutation: &Mutation,
    record: &mut Record,
    old: &Identifier,
    new: &NewIdentity,
) -> Result<(), Error> {
    let n = position(&record.user, old)?;
    if *old == new.identifier {
        record.user.identities[n].display.clone_from(&new.display);
        return Ok(());
    }

    if old.kind() != new.identifier.kind() {
        check_primary(mutation, record, n)?;
    }
    let (old, _) = record.remove_identity(n);
    let primary = old.primary && old.identifier.kind() == new.identifier.kind();
    match position(&record.user, &new.identifier) {
        Ok(own) => record.user.identities[own].primary |= primary,
        Err(_) => {
            let time = mutation.now.time.after(record.user.update_time);
            record.user.identities.insert(n, Identity { primary, ..new.identity(time) });
            record.guard(&new.identifier, &mutation.policies);
        }
    }

    Ok(())
}

/// Deletes the user, who can be restored within the window.
pub fn delete(mutation: &Mutation, record: &mut Record) {
    record.internals.disabled = record.user.state == State::Disabled;
    let purge_time = mutation.now.time.plus(mutation.policies.restore_window);
    record.user.state = State::Deleted { delete_time: mutation.now.time, purge_time };
}
