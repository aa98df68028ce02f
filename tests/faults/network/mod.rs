//! Lost messages, bad networks, cancelled calls, moving chunks, and contention.

mod bad_network;
mod cancellation;
mod commits;
mod contention;
mod lost_messages;
mod migration;
