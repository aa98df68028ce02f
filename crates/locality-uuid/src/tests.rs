//! Tests of the public API.

mod generating;
mod origins;
mod reading;
mod windows;
