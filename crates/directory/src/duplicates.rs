//! Duplicates: users of one tenant who are probably the same person. Pure functions: the keys that
//! a user shares with its duplicates, and the comparison of two users. `service` walks a tenant's
//! users.
//!
//! Values are stored and compared as hashes with a random seed, so that callers cannot choose
//! colliding values.

pub mod compare;
pub mod email;
pub mod evidence;
pub mod frequency;
pub mod key_index;
pub mod name;
pub mod pairs;
pub mod profile;
mod shared;

#[cfg(test)]
mod tests;
