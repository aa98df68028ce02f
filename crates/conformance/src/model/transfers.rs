//! Moves of an identity from one user to another.

use polynym_directory::{Error, Identity, Invalid, Mutation};
use polynym_identifier::Identifier;

use super::edits::{just_after, unlink};
use super::state::Person;

/// The refusal to move an identity to its owner.
pub fn same_user() -> Error {
    let message = "is the user who gets the identity".to_owned();
    Error::Invalid { what: Invalid::UserId, field: "from_user_id".to_owned(), message }
}

/// Moves an identity. Returns the former owner.
pub fn move_identity(
    mut giver: Person,
    taker: &mut Person,
    identifier: &Identifier,
    mutation: &Mutation,
) -> Result<Person, Error> {
    let at = giver.position(identifier)?;
    let is_guarded = giver.guarded.contains(identifier);
    let identity = giver.user.identities[at].clone();
    unlink(&mut giver, identifier, mutation)?;
    let link_time = mutation.now.time.max(just_after(taker.user.update_time));
    let moved = Identity { primary: false, link_time, import_time: None, ..identity };
    taker.user.identities.push(moved);
    if is_guarded {
        taker.guarded.insert(identifier.clone());
    }
    Ok(giver)
}
