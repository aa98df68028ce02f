//! Clock jumps under a server with a cache: ages use the monotonic clock alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_layers::lookup_cache::Cached;
use polynym_mongodb::Options;
use polynym_proto::v1;

use super::{Databases, TIMEOUT, one_member};
use crate::calls::{handle, identity};
use crate::support::scenarios::clocks::{self, DAY, MONTH};

const AGE: Duration = Duration::from_secs(4);

async fn reads(scene: &mut clocks::Scene, max_staleness: Duration) -> u32 {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(handle("joe")),
        max_staleness: Some(max_staleness.try_into().unwrap()),
        ..Default::default()
    };
    let found = scene.client.directory.resolve_identity(request).await.unwrap();
    found.metadata().get("polynym-reads").unwrap().to_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_change_no_answers_age() {
    let factory = Databases::of_set(one_member().await, "").factory();
    factory.mongo().await.unwrap().close().await;
    let options = Options { timeout: TIMEOUT, cache_bytes: 1 << 20, ..Options::default() };
    let store = polynym_mongodb::Mongo::open(&factory.uri().await, options).await.unwrap();
    let cache = store.cache().unwrap();
    let backend = Arc::new(store).backend();
    let rules = backend.rules.clone();
    let cached = backend.layered(|inner| Cached::new(inner, rules, cache));
    let mut scene = clocks::Scene::new(cached).await;
    let joe = v1::User { identities: vec![identity(handle("joe"))], ..Default::default() };
    scene.client.create(joe).await.unwrap();

    for ahead in [MONTH, -MONTH, 500 * DAY, 0] {
        // A look-up of the present, by the present clock.
        let sent = Instant::now();
        assert!(reads(&mut scene, Duration::from_nanos(1)).await > 0);
        let read = Instant::now();
        scene.clock.set_ahead(ahead);
        let count = reads(&mut scene, AGE).await;
        assert!(count == 0 || sent.elapsed() >= AGE, "{ahead} ms ahead: it is within the age");
        tokio::time::sleep(AGE.saturating_sub(read.elapsed())).await;
        // On a busy machine, the previous look-up may have filled the cache.
        if count == 0 {
            assert!(reads(&mut scene, AGE).await > 0, "{ahead} ms ahead: it is beyond the age");
        }
    }
}
