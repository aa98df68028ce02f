//! Lost messages, bad networks, callers that leave, chunks that move, and contention.

mod bad;
mod commits;
mod contention;
mod leaving;
mod lost;
mod migration;
