//! The configuration: parses flags, environment variables and the file into valid settings, and
//! reports all errors together. Other modules decide what the settings mean.
//!
//! A field in [`settings!`] defines a flag `--max-calls`, an environment variable
//! `POLYNYM_MAX_CALLS`, a key `max_calls` in the TOML file, and its help. A flag wins over the
//! environment, the environment over the file.

mod client;
mod error;
mod file;
mod flags;
pub mod parse;
mod setting;
#[cfg(test)]
mod tests;
mod top;
mod values;

pub use client::{Bench, Caller, ChangeClient, ChangeServer, Client, Output, Purpose, Server};
pub use error::{SettingError, SettingErrors};
pub use file::unknown as unknown_key;
pub use flags::{Flags, share_file_with};
pub use setting::{Setting, settings};
pub use top::Top;
pub use values::{Settings, Values};
