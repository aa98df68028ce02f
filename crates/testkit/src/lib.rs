//! Shared by the tests: servers, clients and stores, and scenarios that every store passes.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "no other code uses this crate")]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a scenario is followed from beginning to end"
)]

pub mod calls;
pub mod collector;
pub mod damaged;
pub mod doc_examples;
pub mod expiry;
pub mod golden;
pub mod http;
pub mod mongo;
pub mod output;
pub mod packages;
pub mod receiver;
pub mod reflection;
pub mod scenarios;
pub mod scrape;
pub mod server;
pub mod soak;
pub mod status;
pub mod steps;
pub mod stubs;
pub mod tls;
pub mod unknown_field;
pub mod users;

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use conformance::{StoreFactory, cases};
use futures_util::stream::{self, StreamExt};
use redb::{Database, DatabaseError};

/// The number of concurrent cases: most of their time is spent waiting for fsync.
const CONCURRENT_CASES: usize = 4;

/// The folder of the project.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// An error and its causes in one line.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&cause| cause.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Runs the conformance suite, each case in a store of its own, and prints the outcome of each.
/// With `POLYNYM_CASE` set, only cases with that text in their names run.
pub async fn conformance(factory: impl Fn() -> Arc<dyn StoreFactory>) {
    conformance_where(|_| true, factory).await;
}

/// The cases of the conformance suite whose names begin with one of these texts: a sample.
pub async fn conformance_of(rooms: &[&str], factory: impl Fn() -> Arc<dyn StoreFactory>) {
    conformance_where(|name| is_in(rooms, name), factory).await;
}

/// The cases of the conformance suite whose names begin with none of these texts.
pub async fn conformance_without(rooms: &[&str], factory: impl Fn() -> Arc<dyn StoreFactory>) {
    conformance_where(|name| !is_in(rooms, name), factory).await;
}

fn is_in(rooms: &[&str], name: &str) -> bool {
    rooms.iter().any(|room| name.starts_with(room))
}

async fn conformance_where(
    is_selected: impl Fn(&str) -> bool,
    factory: impl Fn() -> Arc<dyn StoreFactory>,
) {
    let only = std::env::var("POLYNYM_CASE").unwrap_or_default();
    let selected =
        cases().into_iter().filter(|case| case.name().contains(&only) && is_selected(case.name()));
    let run = |case: conformance::Case| {
        let (name, factory) = (case.name(), factory());
        async move {
            let start = Instant::now();
            let outcome = tokio::spawn(case.run(factory)).await;
            let failure = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some(with_causes(&*failure)),
                Err(panic) => Some(panic.to_string()),
            };
            println!(
                "{name} ({} ms): {}",
                start.elapsed().as_millis(),
                failure.as_deref().unwrap_or("ok")
            );
            (name, failure.is_some())
        }
    };

    let outcomes: Vec<_> =
        stream::iter(selected).map(run).buffer_unordered(CONCURRENT_CASES).collect().await;
    assert!(!outcomes.is_empty(), "no case has {only} in its name");
    let failed: Vec<_> =
        outcomes.into_iter().filter(|(_, failed)| *failed).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "{} cases failed: {failed:#?}", failed.len());
}

/// Opens the database file of an embedded store that is closed. A forked process shares its open
/// files until it calls exec, so the file may stay locked for a moment.
pub fn database(folder: &Path) -> Database {
    for _ in 0..3_000 {
        match Database::open(folder.join("directory.redb")) {
            Err(DatabaseError::DatabaseAlreadyOpen) => sleep(Duration::from_millis(20)),
            database => return database.unwrap(),
        }
    }
    panic!("the store is open");
}
