//! Runs the scenarios of the clients. A client is a puppet that takes steps as JSON and answers
//! each. The testbed starts a server and a proxy with faults between both, and compares every
//! answer with that of the server itself.

#![forbid(unsafe_code)]

mod api;
mod check;
mod direct;
mod frame;
mod matrix;
mod proxy;
mod puppet;
mod runner;
mod scenario;
mod server;
mod steps;
mod value;

pub use proxy::Proxy;
pub use puppet::{Puppet, StdioPuppet};
pub use runner::{Options, Report, run};
pub use server::program;

/// Why a scenario failed, or cannot run.
pub type Outcome<T> = Result<T, String>;

/// The text of an error, with what was being done.
fn context<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> String + '_ {
    move |error| format!("{what}: {error}")
}
