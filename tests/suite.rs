//! Tests of the whole program in one process: they mostly wait, so they run in parallel, and shared
//! MongoDB servers start once. A test that kills or freezes a server, or counts its operations, has
//! its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod access;
mod canary;
mod cli;
mod coalesce;
mod crash;
mod deploy;
mod embedded;
mod faults;
mod full;
mod grpc;
mod harness;
mod http2;
mod inbox;
mod lookup_cache;
mod misbehaving;
mod mongo;
mod operators;
mod readme;
mod sharded;
mod store_cli;
mod support;
mod transfer;
mod usage;
mod walkthrough;
mod watch_cli;

use support::{
    calls, collector, doc_examples, linear, mongo as servers, reflection, scrape, server, status,
    users,
};
