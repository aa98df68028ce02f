//! The effect of a change on one user. Its claims follow from the difference, in
//! [`claim_diff`](crate::mutation::claim_diff).

use super::{Mutation, UserChange};
use crate::error::Error;
use crate::model::new_user::NewIdentity;
use crate::model::record::{Guarded, Record};
use crate::model::user::{Identity, State, User};
use polynym_identifier::Identifier;

/// Applies a change that concerns this user alone. Other changes have no effect here.
pub fn apply(mutation: &Mutation, change: &UserChange, record: &mut Record) -> Result<(), Error> {
    let user = &mut record.user;
    match change {
        UserChange::Update(update) => {
            mutation.policies.check_types(update.values())?;
            update.apply(user);
        }
        UserChange::Link(draft) => link(mutation, record, draft),
        UserChange::Unlink(identifier) => drop(give_up(mutation, record, identifier)?),
        UserChange::Replace(old, draft) => replace(mutation, record, old, draft)?,
        UserChange::Verify(identifier, verification) => {
            let n = position(user, identifier)?;
            user.identities[n].verification.clone_from(verification);
        }
        UserChange::Disable => user.state = State::Disabled,
        UserChange::Enable => user.state = State::Active,
        UserChange::Delete => delete(mutation, record),
        UserChange::Undelete => {
            let disabled = std::mem::take(&mut record.private.disabled);
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
        | UserChange::Reindex => {}
    }

    Ok(())
}

/// The position of the identity in the user's list.
pub fn position(user: &User, identifier: &Identifier) -> Result<usize, Error> {
    let is = |identity: &Identity| identity.identifier == *identifier;
    user.identities.iter().position(is).ok_or(Error::NotOwned)
}

fn link(mutation: &Mutation, record: &mut Record, draft: &NewIdentity) {
    let time = mutation.time.after(record.user.update_time);
    let identities = &mut record.user.identities;
    match identities.iter_mut().find(|identity| identity.identifier == draft.identifier) {
        None => {
            identities.push(draft.identity(time));
            record.guard(&draft.identifier, &mutation.policies);
        }
        Some(identity) => {
            if identity.verification.is_none() {
                identity.verification.clone_from(&draft.verification);
            }
            if draft.has_name() {
                identity.display.clone_from(&draft.display);
            }
        }
    }

    if draft.primary {
        record.user.mark(&draft.identifier);
    }
}

/// Takes an identity out, with its guard, where the tenant's policies let the user do without it.
pub fn give_up(
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
    Ok(record.take(n))
}

/// A primary identity that must stay does so while the user has others of its kind.
fn check_primary(mutation: &Mutation, record: &Record, n: usize) -> Result<(), Error> {
    let identities = &record.user.identities;
    let kind = identities[n].identifier.kind();
    let same = identities.iter().filter(|identity| identity.identifier.kind() == kind).count();
    let must_stay = mutation.policies.keep_primary && identities[n].primary && same > 1;
    if must_stay { Err(Error::PrimaryIdentity) } else { Ok(()) }
}

/// The new identity takes the old one's place in the list, and its mark where both are of one kind.
/// One that the user has already stays where it is, and where only the spelling differs, the
/// identity stays what it was.
fn replace(
    mutation: &Mutation,
    record: &mut Record,
    old: &Identifier,
    draft: &NewIdentity,
) -> Result<(), Error> {
    let n = position(&record.user, old)?;
    if *old == draft.identifier {
        record.user.identities[n].display.clone_from(&draft.display);
        return Ok(());
    }

    if old.kind() != draft.identifier.kind() {
        check_primary(mutation, record, n)?;
    }
    let (old, _) = record.take(n);
    let primary = old.primary && old.identifier.kind() == draft.identifier.kind();
    match position(&record.user, &draft.identifier) {
        Ok(own) => record.user.identities[own].primary |= primary,
        Err(_) => {
            let time = mutation.time.after(record.user.update_time);
            record.user.identities.insert(n, Identity { primary, ..draft.identity(time) });
            record.guard(&draft.identifier, &mutation.policies);
        }
    }

    Ok(())
}

fn delete(mutation: &Mutation, record: &mut Record) {
    record.private.disabled = record.user.state == State::Disabled;
    let purge_time = mutation.time.plus(mutation.policies.restore_window);
    record.user.state = State::Deleted { delete_time: mutation.time, purge_time };
}
