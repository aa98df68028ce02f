//! The listener for operators, apart from that of the API: metrics, and whether the server lives
//! and is ready. HTTP/1.1 with bounds on all that the other side controls.

mod listener;
mod pages;

pub use listener::serve;
pub use pages::{Pages, Readiness};
