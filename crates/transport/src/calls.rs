//! Calls: the checks of their requests, permits, bodies, counts and traces.

pub mod count;
pub mod handler;
pub mod permits;
pub mod request_body;
pub mod request_check;
pub mod response_body;
pub mod trace;
