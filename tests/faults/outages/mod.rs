//! Servers that are killed, frozen, cut off or replaced.

mod absent;
mod away;
mod failover;
mod freed;
mod frozen;
mod killed;
mod partition;
mod phases;
mod routers;
