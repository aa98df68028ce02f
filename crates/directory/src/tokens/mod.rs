//! Tokens that a caller gives back unchanged, which only this store can read and make.

pub mod key;
pub mod sealed;
