//! Checks that fail with a message and the place of the check.

use std::fmt::Debug;
use std::panic::Location;

use polynym_directory::{Error, User};

use super::Failure;

/// Fails with `what` unless `holds`.
#[track_caller]
pub fn ensure(holds: bool, what: impl AsRef<str>) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(failure(what.as_ref())) }
}

/// Fails unless what was found is what was wanted.
#[track_caller]
pub fn equal<T: PartialEq + Debug + ?Sized>(
    found: &T,
    wanted: &T,
    what: &str,
) -> Result<(), Failure> {
    ensure(found == wanted, format!("{what}: found {found:?}, wanted {wanted:?}"))
}

/// Fails unless a mutation was refused with `wanted`, in every field of it.
#[track_caller]
pub fn refused(outcome: Result<User, Error>, wanted: &Error) -> Result<(), Failure> {
    match outcome {
        Ok(user) => Err(failure(&format!("accepted instead of refused with {wanted:?}: {user:?}"))),
        Err(error) => equal(&format!("{error:?}"), &format!("{wanted:?}"), "the refusal"),
    }
}

/// Fails unless `outcome` is [`Error::IdentityTaken`] with this owner and field.
#[track_caller]
pub fn taken(outcome: Result<User, Error>, owner: &User, field: &str) -> Result<(), Failure> {
    refused(outcome, &Error::IdentityTaken { owner: owner.id, field: field.to_owned() })
}

#[track_caller]
fn failure(what: &str) -> Failure {
    let place = Location::caller();
    format!("{}:{}: {what}", place.file(), place.line()).into()
}
