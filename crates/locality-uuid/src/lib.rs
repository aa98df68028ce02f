//! Locality UUIDs (version b): their fields, their text form, and their generation.
//!
//! ```text
//! wwwwwwww-xxxx-byyy-yyyy-zzzzzzzzzzzz
//! w  32 bits: counter      x  16 bits: process id      b  the version, the literal hex digit b
//! y  28 bits: node         z  48 bits: milliseconds since the Unix epoch, UTC
//! ```
//!
//! [`LocalityId`] holds any UUID, [`Generator`] makes new ones. The layout and both counter modes
//! follow Groupon's locality-uuid (Java and Ruby, 2013).

mod generator;
mod id;
mod origin;
mod sequence;
#[cfg(feature = "serde")]
mod serde_form;
mod split;
mod text;
mod window;

#[cfg(test)]
mod tests;

pub use generator::{Builder, Generator, Mode};
pub use id::LocalityId;
pub use split::split_points;
pub use text::{ParseIdError, TEXT_LEN};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
