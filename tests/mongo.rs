//! The store on MongoDB, on replica sets: the conformance suite, and what is particular to this
//! store.

mod clocks;
mod connecting;
mod deleting;
mod expiry;
mod exporting;
mod forgetting;
mod golden;
mod heartbeat;
mod losses;
mod opening;
mod preference;
mod purging;
mod records;
mod roles;
mod rules;
mod secured;
mod versions;
mod waiting;
mod watching;

use std::sync::Arc;

use async_trait::async_trait;
use conformance::{Failure, StoreFactory};
use polynym::directory::Backend;
use polynym::store::coalesce::Coalesced;

use crate::servers::{self, Databases, InDatabase};
use crate::support;

/// Random runs held against the model.
const RUNS: u32 = 12;

/// A place whose store sends look-ups together.
struct Together(InDatabase);

#[async_trait]
impl StoreFactory for Together {
    async fn open(&self) -> Result<Backend, Failure> {
        let backend = self.0.open().await?;
        Ok(backend.layered(|inner| Coalesced::new(inner, Default::default())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_with_look_ups_together() {
    let databases = Databases::of_set(servers::one_member().await, "retryWrites=false");
    support::conformance(|| Arc::new(Together(databases.place()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_on_three_members() {
    let databases = Databases::of_set(servers::three_members().await, "retryWrites=true");
    support::conformance(|| Arc::new(databases.place())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = Databases::of_set(runtime.block_on(servers::one_member()), "");
    support::steps::against_the_model(RUNS, || databases.place());
}
