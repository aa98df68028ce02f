//! The documents of the store: names of collections and fields, and the forms of what they hold.

pub mod attributes;
pub mod bson;
pub mod claim;
pub mod event;
pub mod fields;
pub mod hash;
pub mod preserved;
pub mod request;
pub mod tail;
pub mod tenant;
pub mod user;
pub mod versions;
