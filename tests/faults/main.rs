//! Faults under the store on MongoDB: servers killed, frozen and replaced, replies lost, networks
//! cut, chunks moved, callers that leave, and contention. After each fault everything is checked:
//! see [`audit`] and [`ledger`].

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod aged;
mod audit;
mod caller;
mod exporting;
mod group;
mod history;
mod importing;
mod ledger;
mod linear;
mod load;
mod naming;
mod network;
mod notices;
mod outages;
mod place;
mod searching;
mod sharded;
mod torn;
mod usage;

use testkit::{self as support, calls, mongo as servers, server, users};
