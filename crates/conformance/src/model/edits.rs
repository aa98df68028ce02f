//! Changes of one user in the reference model.

use polynym_directory::{Error, Identity, Mutation, NewIdentity, State, Timestamp, UserChange};
use polynym_identifier::Identifier;

use super::state::Person;
use crate::step::{ATTRIBUTES, Action, all, set};

/// The next millisecond.
pub fn just_after(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + 1)
}

/// Changes one user.
pub fn change_user(
    person: &mut Person,
    mutation: &Mutation,
    change: &UserChange,
    action: &Action,
) -> Result<(), Error> {
    let user = &mut person.user;
    match (action, change) {
        (Action::Rename(0), _) => user.display_name.clear(),
        (Action::Rename(name), _) => user.display_name = name.to_string(),
        (Action::Set(n, value), _) => {
            user.attributes.remove(ATTRIBUTES[*n]);
            user.attributes.extend(set(*n, *value));
        }
        (Action::SetAll(numbers), _) => user.attributes = all(numbers),
        (_, UserChange::Disable) => user.state = State::Disabled,
        (_, UserChange::Enable) => user.state = State::Active,
        (_, UserChange::Delete) => {
            person.disabled = user.state == State::Disabled;
            let delete_time = mutation.now.time;
            let window = mutation.policies.restore_window.as_millis() as i64;
            let purge_time = Timestamp::from_millis(delete_time.as_millis() + window);
            user.state = State::Deleted { delete_time, purge_time };
        }
        (_, UserChange::Undelete) => {
            user.state = if person.disabled { State::Disabled } else { State::Active }
        }
        (_, UserChange::Link(new)) => link(person, new, mutation),
        (_, UserChange::Unlink(old)) => unlink(person, old, mutation)?,
        (_, UserChange::Verify(name, verification)) => {
            let at = person.position(name)?;
            person.user.identities[at].verification = verification.clone();
        }
        (_, UserChange::Replace(old, new)) => replace(person, old, new, mutation)?,
        _ => {}
    }

    Ok(())
}

fn link(person: &mut Person, new: &NewIdentity, mutation: &Mutation) {
    let time = mutation.now.time.max(just_after(person.user.update_time));
    match person.position(&new.identifier) {
        Err(_) => {
            person.add_identity(new, person.user.identities.len(), new.primary, time, mutation)
        }
        Ok(at) => {
            let known = &mut person.user.identities[at];
            if known.verification.is_none() {
                known.verification = new.verification.clone();
            }
            // The provider renamed the account.
            if let Some((_, subject)) = new.identifier.social_parts()
                && new.display != subject
            {
                known.display = new.display.clone();
            }
        }
    }

    if new.primary {
        for identity in &mut person.user.identities {
            let same = identity.identifier == new.identifier;
            identity.primary =
                same || (identity.primary && identity.identifier.kind() != new.identifier.kind());
        }
    }
}

pub fn unlink(person: &mut Person, old: &Identifier, mutation: &Mutation) -> Result<(), Error> {
    let at = person.position(old)?;
    let identities = &person.user.identities;
    if mutation.policies.keep_last && identities.len() == 1 {
        return Err(Error::LastIdentity);
    }
    check_primary(person, at, mutation)?;
    person.remove_identity(at);
    Ok(())
}

fn check_primary(person: &Person, at: usize, mutation: &Mutation) -> Result<(), Error> {
    let old = &person.user.identities[at];
    let is_other = |i: &Identity| {
        i.identifier.kind() == old.identifier.kind() && i.identifier != old.identifier
    };
    let others = person.user.identities.iter().any(is_other);
    if mutation.policies.keep_primary && old.primary && others {
        Err(Error::PrimaryIdentity)
    } else {
        Ok(())
    }
}

fn replace(
    person: &mut Person,
    old: &Identifier,
    new: &NewIdentity,
    mutation: &Mutation,
) -> Result<(), Error> {
    let at = person.position(old)?;
    if *old == new.identifier {
        person.user.identities[at].display = new.display.clone();
        return Ok(());
    }

    if old.kind() != new.identifier.kind() {
        check_primary(person, at, mutation)?;
    }
    let time = mutation.now.time.max(just_after(person.user.update_time));
    let primary = person.remove_identity(at).primary && old.kind() == new.identifier.kind();
    match person.position(&new.identifier) {
        Ok(own) => person.user.identities[own].primary |= primary,
        Err(_) => person.add_identity(new, at, primary, time, mutation),
    }

    Ok(())
}
