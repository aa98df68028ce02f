//! The client of Polynym, a user directory where one user has many names.
//!
//! ```no_run
#![doc = include_str!("../examples/ten_lines.rs")]
//! ```
//!
//! Every call has a deadline and is retried within it. A change gets a request id that all attempts
//! have, so it happens once. Concurrent look-ups share calls. README.md has a paragraph on each.

#![forbid(unsafe_code)]

mod attempts;
mod batch;
mod builder;
mod call;
mod client;
mod connection;
mod create;
mod error;
mod event;
#[cfg(test)]
mod fake;
mod identifier;
mod method;
mod observer;
mod pages;
pub mod purpose;
pub mod reasons;
mod resolve;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use builder::Builder;
pub use call::Answers;
pub use client::Client;
pub use connection::{ConnectError, Connection};
pub use create::Obtained;
pub use error::{Error, Kind};
pub use event::event_type;
pub use identifier::{email, handle, phone, social, url};
pub use observer::Attempt;
pub use pages::Items;
/// The messages of the API.
pub use polynym_proto::v1;
pub use resolve::Resolve;
pub use watch::Watch;

/// The services. Their methods follow the rules of the client.
#[allow(clippy::all, rustdoc::all, unused_qualifications, reason = "generated code")]
pub mod services {
    include!(concat!(env!("OUT_DIR"), "/polynym.v1.rs"));
}
