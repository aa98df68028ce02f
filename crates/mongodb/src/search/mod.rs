//! Searches, and the names of attributes.

pub mod by_lead;
pub mod filters;
pub mod known_words;
pub mod names;
pub mod range;
pub mod user_names;
