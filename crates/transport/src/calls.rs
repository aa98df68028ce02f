//! Calls: the checks of their requests, permits, bodies, counts and traces.

pub mod authorization;
pub mod call_protocol;
pub mod compute_shares;
pub mod count;
mod detachable;
pub mod handler;
pub mod permits;
pub mod refusal_log;
pub mod response_body;
pub mod trace;
