//! Events are delivered to receivers: signed by Standard Webhooks, as CloudEvents, and until they
//! arrive.
//!
//! A receiver is another program, which may be slow, gone, broken or in other hands: what it
//! answers is bounded in time and bytes. Its address is one that anybody could reach, unless the
//! operator names others.

#![forbid(unsafe_code)]

mod address;
mod attempts;
mod cloud_event;
mod connection;
mod deliverer;
mod events;
mod lease;
pub mod metrics;
mod network;
mod receiver;
mod schedule;
mod secret;
mod sender;
mod sent;
mod turn;

pub use address::{AddressPolicy, UrlFault};
pub use deliverer::Deliverer;
pub use network::Network;
pub use secret::{Secret, signatures};
