//! Faults under the store on MongoDB: servers killed, frozen and replaced, replies lost, networks
//! cut, chunks moved, callers that leave, and contention. After each fault everything is checked:
//! see [`audit`] and [`ledger`].

mod absent;
mod aged;
mod audit;
mod away;
mod caller;
mod commits;
mod contention;
mod failover;
mod freed;
mod frozen;
mod group;
mod history;
mod inbox;
mod inbox_merges;
mod inbox_servers;
mod killed;
mod leaving;
mod ledger;
mod load;
mod lost;
mod migration;
mod naming;
mod network;
mod partition;
mod phases;
pub mod place;
mod routers;
mod searching;
mod sharded;
mod torn;
mod usage;
