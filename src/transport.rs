//! HTTP/2 connections of gRPC: accepting them, and bounds on all that the other side controls.

mod call_count;
mod call_handler;
mod call_permits;
mod connection;
mod connection_task;
pub(crate) mod log_throttle;
mod memory_budget;
mod options;
mod peer;
mod preface;
pub(crate) mod protocol;
pub(crate) mod request_body;
mod request_check;
mod response_body;
pub(crate) mod rich_status;
pub(crate) mod routes;
mod server;
mod strangers;
mod tls;
mod trace;
mod unvectored_io;

pub use call_count::{CALLS, LogCalls, REJECTED, SECONDS as CALL_SECONDS};
pub use call_handler::{CONNECTIONS, PANICS};
pub use call_permits::{PERMITS, UNDER_WAY};
pub use connection::HANDSHAKES;
pub use options::Options;
pub use server::Listener;
pub(crate) use server::serve;
pub use strangers::Strangers;
pub use tls::{CERTIFICATE_BROKEN, CERTIFICATE_DAYS_LEFT, Protocol, Tls, TlsFiles};
pub use trace::export_to as export_traces_to;
