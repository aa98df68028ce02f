//! The tests of the program as a whole, in one process: most of their time is spent waiting, which
//! they do side by side, and servers of MongoDB that they share are started once. A test that
//! kills, freezes or counts on a server has its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test tells one story from beginning to end"
)]

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
mod misbehaving;
mod mongo;
mod readme;
mod sharded;
mod store_cli;
mod support;
mod walkthrough;

use support::{calls, linear, mongo as servers, reflection, server, shown, status, users};
