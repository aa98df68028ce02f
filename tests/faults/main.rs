//! Faults under the store on MongoDB: killed, frozen and replaced servers, lost replies, cut
//! networks, moving chunks, cancelled calls and contention. After each fault [`audit`] and
//! [`ledger`] check everything.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod attribute_names;
mod audit;
mod caller;
mod exporting;
mod group;
mod half_committed;
mod history;
mod importing;
mod ledger;
mod linear;
mod load;
mod network;
mod notices;
mod outages;
mod search;
mod sharded;
mod soak;
mod staleness;
mod stores;
mod torn_backup;
mod usage;

use testkit::{self as support, calls, mongo as servers, scrape, server, users};
