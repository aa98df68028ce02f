//! A short soak of a server on a folder, and what a soak calls flat. `scripts/soak` runs long ones.

use std::time::Duration;

use crate::support::server::program;
use crate::support::soak::{Calls, Plan, Report, Sample, Store, Usage, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_short_soak_finds_nothing() {
    let plan = Plan {
        program: program(),
        length: Duration::from_secs(8),
        interval: Duration::from_secs(1),
        callers: 8,
        users: 10,
    };
    let report = run(&plan, Store::Embedded).await;
    assert_eq!(report.faults, Vec::<String>::new());
    let Calls { look_ups, changes, events, .. } = report.total;
    assert!(look_ups > 0 && changes > 0 && events > 0, "{look_ups} {changes} {events}");
    assert!(!report.blows.is_empty(), "no server went down");
}

/// The report of a server whose memory, descriptors and threads are this after each minute.
fn report(usage: impl Fn(f64) -> Usage) -> Report {
    let sample = |minute: u32| Sample {
        seconds: f64::from(minute) * 60.0,
        servers: vec![Some(usage(f64::from(minute)))],
        calls: Calls::default(),
    };
    let samples = (0..=20).map(sample).collect();
    Report { samples, blows: Vec::new(), total: Calls::default(), faults: Vec::new() }
}

#[test]
fn memory_that_rises_in_the_second_half_is_found() {
    let flat = Usage { memory_mib: 150.0, descriptors: 60.0, threads: 12.0 };
    assert_eq!(report(|_| flat).rising(), Vec::<String>::new());
    // Caches fill in the first half.
    let filling = |minute: f64| Usage { memory_mib: 50.0 + 10.0 * minute.min(10.0), ..flat };
    assert_eq!(report(filling).rising(), Vec::<String>::new());

    let leaking = report(|minute| Usage { memory_mib: 50.0 + minute, ..flat });
    assert_eq!(leaking.rising(), ["memory in MiB: rises steadily by 10.0, not 8"]);
    let leaking = report(|minute| Usage { descriptors: 60.0 + minute, ..flat });
    assert_eq!(leaking.rising(), ["descriptors: rises steadily by 10.0, not 8"]);
}

#[test]
fn what_a_fault_leaves_behind_has_a_bound_of_its_own() {
    let flat = Usage { memory_mib: 150.0, descriptors: 60.0, threads: 12.0 };
    let stepping = |by: f64| {
        let step = move |minute: f64| flat.memory_mib + if minute > 15.0 { by } else { 0.0 };
        let usage = move |minute: f64| Usage { memory_mib: step(minute), ..flat };
        Report { blows: vec![(930.0, "shard".to_owned())], ..report(usage) }
    };
    assert_eq!(stepping(20.0).rising(), Vec::<String>::new());
    assert_eq!(stepping(30.0).rising(), ["memory in MiB: rises in all by 30.0, not 24"]);
    let leaking = Report {
        blows: vec![(930.0, "shard".to_owned())],
        ..report(|minute| Usage { memory_mib: 50.0 + minute, ..flat })
    };
    assert_eq!(leaking.rising(), ["memory in MiB: rises steadily by 10.0, not 8"]);
}
