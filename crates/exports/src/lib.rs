//! The exports of other user directories. A format is a reader that turns a file into users, in
//! the form that lines of JSON have: what follows an import does not depend on the format.
//!
//! A file is read once, from its beginning to its end. The memory is bounded: by the size of one
//! user, whatever the size of the file. What a format has and a user has not is counted, by name,
//! in [`Notes`].

#![forbid(unsafe_code)]

mod auth0;
mod firebase;
mod format;
mod guess;
mod json;
mod keycloak;
mod kratos;
mod ldif;
mod notes;
mod open;
mod person;
mod providers;
mod sheet;
mod times;
mod unfolded;
mod users;
mod vcard;

pub use format::ExportFormat;
pub use guess::{HEAD_BYTES, guess};
pub use notes::{Counts, Notes};
pub use open::open;
pub use users::{Entry, ReadOptions, Users};
