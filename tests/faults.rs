//! What the store on MongoDB does when something breaks: servers killed, frozen and replaced, replies lost, networks cut,
//! chunks that move, callers that leave, and many who want the same. After each fault everything is checked: see
//! [`audit`] and [`ledger`].

#![allow(clippy::unwrap_used, reason = "a test may give up")]

#[path = "faults/audit.rs"]
mod audit;
#[path = "faults/caller.rs"]
mod caller;
#[path = "support/calls.rs"]
mod calls;
#[path = "faults/contention.rs"]
mod contention;
#[path = "faults/failover.rs"]
mod failover;
#[path = "faults/group.rs"]
mod group;
#[path = "faults/history.rs"]
mod history;
#[path = "faults/killed.rs"]
mod killed;
#[path = "faults/leaving.rs"]
mod leaving;
#[path = "faults/ledger.rs"]
mod ledger;
#[path = "support/linear.rs"]
mod linear;
#[path = "faults/load.rs"]
mod load;
#[path = "faults/lost.rs"]
mod lost;
#[path = "faults/migration.rs"]
mod migration;
#[path = "faults/network.rs"]
mod network;
#[path = "faults/place.rs"]
mod place;
#[path = "support/server.rs"]
mod server;
#[path = "support/mongo/mod.rs"]
mod servers;
#[path = "support/users.rs"]
mod users;
