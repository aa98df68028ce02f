//! The listener for operators, separate from that of the API: metrics, liveness and readiness.
//! Speaks HTTP/1.1, with limits on everything that a client controls.

mod listener;
mod pages;

pub use listener::serve;
pub use pages::Pages;
