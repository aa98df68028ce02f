//! Protection of a server from its clients: TLS and credentials, limits of the transport, and the
//! pages for operators.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod access;
mod canary;
mod cores;
mod descriptors;
mod http;
mod http2;
mod idle;
mod misbehaving;
mod operators;
mod streams;

use http2::store::TestStore;
use testkit::{self as support, calls, collector, reflection, scrape, server, status};

/// The store of the tests of the transport.
fn test_store() -> TestStore {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    TestStore::new(store, Some(folder))
}
