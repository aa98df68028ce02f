//! Write concerns.

use mongodb::bson::{Document, doc};

/// The write concern of writes outside transactions, as a field of a command: a majority has them
/// in its journals.
pub fn majority_document() -> Document {
    doc! { "w": "majority", "j": true }
}
