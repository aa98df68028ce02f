//! What a change of one user makes of it. What that does to claims follows from the difference, in `settle`.

use super::{Change, DraftIdentity, Error, Identity, Record, Timestamp, User};
use crate::identifier::Identifier;

/// Applies a change to the user, who is there.
pub fn apply(change: &Change, record: &mut Record, now: Timestamp) -> Result<(), Error> {
    let user = &mut record.user;
    match change {
        Change::Create(_) => {}
        Change::Update(update) => update.apply(user),
        Change::Link(draft) => link(user, draft, now),
        Change::Unlink(identifier) => {
            let n = position(user, identifier)?;
            user.identities.remove(n);
        }
        Change::Replace(old, draft) => replace(user, old, draft, now)?,
        Change::Verify(identifier, verification) => {
            let n = position(user, identifier)?;
            user.identities[n].verification.clone_from(verification);
        }
    }
    Ok(())
}

fn position(user: &User, identifier: &Identifier) -> Result<usize, Error> {
    let is = |identity: &Identity| identity.identifier == *identifier;
    user.identities.iter().position(is).ok_or(Error::NotOwned)
}

fn link(user: &mut User, draft: &DraftIdentity, now: Timestamp) {
    match user.identities.iter_mut().find(|identity| identity.identifier == draft.identifier) {
        None => user.identities.push(draft.identity(now)),
        Some(identity) if identity.verification.is_none() => identity.verification.clone_from(&draft.verification),
        Some(_) => {}
    }
}

/// The new identity takes the old one's place in the list, and its mark where both are of one kind. One that the user has
/// already stays where it is, and where only the spelling differs, the identity stays what it was.
fn replace(user: &mut User, old: &Identifier, draft: &DraftIdentity, now: Timestamp) -> Result<(), Error> {
    let n = position(user, old)?;
    if *old == draft.identifier {
        user.identities[n].display.clone_from(&draft.display);
        return Ok(());
    }
    let primary = user.identities[n].primary && old.kind() == draft.identifier.kind();
    match position(user, &draft.identifier) {
        Ok(own) => {
            user.identities[own].primary |= primary;
            user.identities.remove(n);
        }
        Err(_) => user.identities[n] = Identity { primary, ..draft.identity(now) },
    }
    Ok(())
}
