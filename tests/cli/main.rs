//! The command line: output and exit status of each command.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod bench;
mod client;
mod counting;
mod deploy;
mod duplicates;
mod life;
mod offline;
mod readme;
mod sample;
mod searching;
mod serving;
mod store;
mod strangers;
mod stumbling;
mod top;
mod transfer;
mod walkthrough;
mod watch;

use testkit::output::{assert_fails, err, json, out};
use testkit::{self as support, doc_examples, reflection, scrape, server, users};
