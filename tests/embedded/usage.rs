//! Counters of calls in the embedded store.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Clock, Directory, Limits, Mutation, Mutations, PolicyUpdate, Resolution, Tenant, TenantChange,
    Tenants, Timestamp, Usage, UsageBatch, UsageQuery, UsageRequest,
};
use polynym_embedded::{self as embedded, Embedded};
use tempfile::TempDir;

use crate::support::scenarios::counters::{DAY, add, batch, counters, server};
use crate::support::users;

/// A new embedded store, and its folder.
fn embedded_store() -> (Embedded, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    (Embedded::open(&folder.path().join("store"), options).unwrap(), folder)
}

#[tokio::test]
async fn expired_records_are_removed() {
    let (store, _folder) = embedded_store();
    let start = Timestamp::from_millis(1_795_559_400_000);
    let later = start.plus(15 * DAY);
    let (server, all) = (server(), (start, later.plus(DAY)));
    add(&store, batch(server, 1, start, 5)).await;
    add(&store, batch(server, 2, later, 6)).await;
    let sums = async |resolution| -> Vec<u64> {
        counters(&store, resolution, all).await.into_values().collect()
    };
    assert_eq!(sums(Resolution::Minute).await, [6]);
    assert_eq!(sums(Resolution::Hour).await, [5, 6]);
    assert_eq!(sums(Resolution::Day).await, [5, 6]);
    // An uncertain clock expires nothing.
    let jumped = UsageBatch { clock_uncertain: true, ..batch(server, 9, start.plus(90 * DAY), 1) };
    add(&store, jumped).await;
    assert_eq!(sums(Resolution::Minute).await, [6]);
    let years = 800 * DAY;
    add(&store, batch(server, 3, start.plus(years), 7)).await;
    let all = (start, start.plus(years + DAY));
    assert_eq!(
        counters(&store, Resolution::Hour, all).await.into_values().collect::<Vec<_>>(),
        [7]
    );
    assert_eq!(counters(&store, Resolution::Day, all).await.len(), 4);
}

/// A tenant that is made again under a former name does not show the former one's counters.
#[tokio::test]
async fn a_deleted_tenant_takes_its_counters_along() {
    let (store, _folder) = embedded_store();
    let (store, clock) = (Arc::new(store), Clock::default());
    let ids = Generator::new(Mode::Variable);
    let directory = Directory::new(store.backend(), ids, Limits::default());
    let directory = directory.with_clock(clock.clone());
    let acme = Tenant::parse("acme").unwrap();
    let create = || {
        let set = users::tenant_mutation(TenantChange::Set(PolicyUpdate::default()));
        Mutation { tenant: acme.clone(), now: Timestamp::now().into(), ..set }
    };
    let count = |number, time| {
        let mut batch = batch(server(), number, Resolution::Minute.floor(time), 5);
        batch.counts.iter_mut().for_each(|count| count.tenant = acme.clone());
        batch
    };
    let now = Timestamp::now();
    let query = UsageQuery {
        tenant: acme.clone(),
        from: Resolution::Hour.floor(now.minus(2 * DAY)),
        to: now.plus(DAY),
        resolution: Resolution::Hour,
        callers: Vec::new(),
        metrics: Vec::new(),
    };
    store.mutate(create()).await.unwrap();
    directory.add_usage(&count(1, now)).await.unwrap();
    assert_eq!(store.usage(query.clone(), 10).await.unwrap().len(), 1);

    directory.delete_tenant(users::call(acme.clone(), "DeleteTenant"), false).await.unwrap();
    let until_gone = async {
        while store.tenant(&acme).await.unwrap().is_some() {
            clock.skip(Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        never = directory.run_tenant_jobs() => match never {},
        () = until_gone => {}
    }
    assert_eq!(store.usage(query.clone(), 10).await.unwrap(), []);

    // Counters that an earlier version has left.
    store.add_usage(Arc::new(count(2, now.minus(DAY)))).await.unwrap();
    assert_eq!(store.usage(query, 10).await.unwrap().len(), 1);
    store.mutate(create()).await.unwrap();
    let request = UsageRequest {
        metrics: &[],
        callers: &[],
        from: Some(now.minus(2 * DAY)),
        to: None,
        resolution: Some(Resolution::Hour),
    };
    let context = users::context(acme.clone(), "GetUsage");
    assert_eq!(directory.usage(&context, request).await.unwrap().points, []);
}
