//! Duplicates: users of one tenant who probably are the same person. Pure functions: the keys that
//! a user shares with its duplicates, and the comparison of two users. The walk over a tenant is in
//! `service`.
//!
//! Values are kept and compared as hashes under a random seed, so that nobody can choose values
//! that collide.

pub mod compare;
pub mod email;
pub mod evidence;
pub mod frequency;
pub mod key_index;
pub mod name;
pub mod pairs;
pub mod profile;

#[cfg(test)]
mod tests;
