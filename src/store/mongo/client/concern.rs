//! Write concerns.

use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};

/// The write concern of writes outside transactions: a majority has them in its journals.
pub fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
}

/// The same concern as a field of a command.
pub fn majority_document() -> Document {
    doc! { "w": "majority", "j": true }
}
