//! Connections of gRPC over HTTP/2, and of Connect over HTTP/1.1 and HTTP/2: accepting them, and
//! bounds on all that clients control.

mod budgets;
mod calls;
mod connect;
mod connection;
mod eviction;
mod gzip;
pub mod http;
pub mod lines;
pub mod log_throttle;
pub mod method;
mod options;
mod peer;
mod preface;
pub mod protocol;
pub mod request_body;
mod request_check;
pub mod rich_status;
mod server;

pub use budgets::streams::StreamPermit;
pub use calls::authorization::Authorization;
pub use calls::count::{CALLS, REJECTED, SECONDS as CALL_SECONDS};
pub use calls::handler::{CONNECTIONS, PANICS, Services};
pub use calls::permits::{CALLS_IN_FLIGHT, PERMITS};
pub use calls::trace::export_to as export_traces_to;
pub use connection::HANDSHAKES;
pub use connection::cores::Cores;
pub use connection::in_memory::{Connector, InMemoryListener, in_memory};
pub use connection::tls::{CERTIFICATE_BROKEN, CERTIFICATE_DAYS_LEFT, Protocol, Tls, TlsFiles};
pub use eviction::EvictionQueue;
pub use log_throttle::LogThrottle;
pub use options::{LogCalls, Options};
pub use server::{Listener, Listeners, serve};
