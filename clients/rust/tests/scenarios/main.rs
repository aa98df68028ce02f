//! The scenarios that all clients share, `clients/scenarios.json`.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::cognitive_complexity, reason = "one arm for each method")]

mod call;
mod puppet;

use client_testbed::{Options, run};

/// `POLYNYM_SCENARIO` selects those with this text in their names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_passes() {
    let only = std::env::var("POLYNYM_SCENARIO").unwrap_or_default();
    let mut puppet = puppet::RustPuppet::default();
    let report = run(&mut puppet, Options { only, without_close: true, ..Options::default() })
        .await
        .unwrap();
    for (time, name) in &report.times {
        println!("{:.2} s {name}", time.as_secs_f64());
    }
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
}
