//! The command line: output and exit status of each command.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod apply;
mod bench;
mod bring_users;
mod bulk;
mod client;
mod delivery;
mod deploy;
mod duplicates;
mod ephemeral;
mod first_day;
mod former_users;
mod health;
mod hints;
mod lifecycle;
mod metrics;
mod offline;
mod other_servers;
mod purposes;
mod readme;
mod sample;
mod search;
mod serving;
mod store;
mod supervision;
mod top;
mod transfer;
mod usability;
mod walkthrough;
mod watch;

use testkit::output::{assert_fails, json, stderr, stdout};
use testkit::{self as support, doc_examples, reflection, scrape, server, users};
