//! The parsing of arguments that several operations have.

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::timestamp::Timestamp;

/// Parses a user's id that `field` names.
pub fn parse_user_id(field: &str, text: &str) -> Result<LocalityId, Error> {
    let message = "a user's id is a UUID in its 36-character text form";
    text.parse().map_err(|_| Error::invalid(Invalid::UserId, field, message))
}

/// Refuses a range whose end is not later than its beginning.
pub fn check_range(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), Error> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => {
            Err(Error::invalid(Invalid::Field, "to", "must be later than `from`"))
        }
        _ => Ok(()),
    }
}
