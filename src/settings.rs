//! The settings of the server and of the commands on stores. `polynym_cli::config` finds their
//! values.

mod access;
mod http;
mod memory;
mod serve;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;

pub use access::{ClientAuth, ServerAccess, ServerTls};
pub use http::ServerHttp;
pub use serve::{Serve, Tenants};
pub use store::{MongoUri, StoreChoice, StoreReport, StoreSettings};
pub use telemetry::{LogCalls, LogFormat, Telemetry};
