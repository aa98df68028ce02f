//! Users for tests of size: `polynym sample` generates them.

pub mod generated;
mod names;
