//! The API over gRPC: decode, ask the directory, encode. No rule of the directory is decided here.

mod admin_service;
mod authorization;
mod backup;
mod batch;
mod convert;
mod directory_service;
mod duplicates;
mod export;
mod health;
mod import;
mod import_batch;
mod import_line;
mod inbox_service;
mod methods;
mod policies;
pub(crate) mod raw_response;
mod read_mask;
mod registry_service;
mod router;
mod server;
mod status;
mod usage;
mod usage_writer;
mod watch;

pub use directory_service::RESOLVE_READS;
pub use server::serve;
pub use watch::{EVENTS as WATCH_EVENTS, WATCHES};
