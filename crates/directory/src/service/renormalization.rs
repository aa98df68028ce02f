//! Moves of identities to other rules of normalisation.

pub mod move_all;
