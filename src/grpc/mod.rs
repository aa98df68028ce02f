//! The API over gRPC: decodes requests, calls the directory and encodes responses. No rule of the
//! directory is decided here.

mod admin_service;
mod api;
mod authorization;
mod batches;
mod convert;
mod directory_service;
mod handlers;
mod health;
mod inbox_service;
mod methods;
mod policies;
mod probes;
mod purpose;
pub(crate) mod raw_response;
mod read_log;
mod registry_service;
mod server;
mod status;
mod watch;

pub use directory_service::RESOLVE_READS;
pub use server::serve;
pub use watch::{EVENTS as WATCH_EVENTS, WATCHES};
