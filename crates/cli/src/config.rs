//! The configuration: parses flags, environment variables and the file into valid settings, and
//! reports all errors together. Other modules decide what the settings mean.
//!
//! One declaration of a [`Setting`] defines its flag `--max-calls`, its environment variable
//! `POLYNYM_MAX_CALLS`, its key `max_calls` in the TOML file, and its help. A flag wins over the
//! environment, the environment over the file.

mod access;
mod client;
mod error;
mod file;
mod flags;
mod http;
pub mod parse;
mod serve;
mod setting;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
mod top;
mod values;

pub use access::{ClientAuth, ServerAccess, ServerTls};
pub use client::{Bench, Caller, ChangeClient, Client, Output, Purpose};
pub use error::{SettingError, SettingErrors};
pub use flags::{Flags, share_file_with};
pub use http::ServerHttp;
pub use serve::{Serve, Tenants};
pub use setting::Setting;
pub use store::{MongoUri, Store, StoreChoice, StoreReport};
pub use telemetry::{LogCalls, LogFormat, Telemetry};
pub use top::Top;
pub use values::{Settings, Values};
