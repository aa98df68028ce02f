//! Identities that go from one user to another.

use polynym_directory::{Error, Identity, Invalid, Mutation};
use polynym_identifier::Identifier;

use super::edits::{just_after, unlink};
use super::state::Person;

/// The refusal to move an identity to the user who has it.
pub fn gets_it() -> Error {
    let message = "is the user who gets the identity".to_owned();
    Error::Invalid { what: Invalid::UserId, field: "from_user_id".to_owned(), message }
}

/// Takes an identity from one and gives it to another. Returns the one.
pub fn hand_over(
    mut giver: Person,
    taker: &mut Person,
    identifier: &Identifier,
    mutation: &Mutation,
) -> Result<Person, Error> {
    let at = giver.position(identifier)?;
    let is_guarded = giver.guarded.contains(identifier);
    let identity = giver.user.identities[at].clone();
    unlink(&mut giver, identifier, mutation)?;
    let link_time = mutation.time.max(just_after(taker.user.update_time));
    taker.user.identities.push(Identity { primary: false, link_time, ..identity });
    if is_guarded {
        taker.guarded.insert(identifier.clone());
    }
    Ok(giver)
}
