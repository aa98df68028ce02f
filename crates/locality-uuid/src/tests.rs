//! The module as its users see it.

mod generating;
mod origins;
mod reading;
mod windows;
