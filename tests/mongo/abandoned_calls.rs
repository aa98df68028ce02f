//! Abandoned calls: they must not hold connections that others need.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use polynym_directory::{Histories, Reads, Search, Tenant, Tenants, Timestamp};
use polynym_mongodb::{InitOptions, Mongo, Options, init};
use tokio::time::{sleep, timeout};

use super::servers;

/// The time limit of other calls.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Abandons more operations than the pool has connections; other calls succeed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn abandoned_calls_release_their_connections() {
    let uri = servers::one_member().await.uri("waiting", "maxPoolSize=4&minPoolSize=1");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store =
        Mongo::open(&uri, Options { timeout: 2 * TIMEOUT, ..Options::default() }).await.unwrap();
    let tenant = Tenant::parse("").unwrap();
    for _ in 0..3 {
        let mut left: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        for n in 0..200 {
            left.push(match n % 3 {
                0 => Box::pin(async { drop(store.scan(&tenant, None, 10).await) }),
                1 => Box::pin(async { drop(store.tenants("", "", 10).await) }),
                _ => {
                    Box::pin(async { drop(store.expired_users(Timestamp::now(), None, 10).await) })
                }
            });
        }
        let begin = poll_fn(|context| {
            left.iter_mut().for_each(|operation| {
                let _ = operation.as_mut().poll(context);
            });
            Poll::Ready(())
        });
        begin.await;
        for _ in 0..20 {
            sleep(Duration::from_millis(10)).await;
            let answered = timeout(TIMEOUT, store.check()).await;
            assert!(matches!(answered, Ok(Ok(()))), "{answered:?}");
        }
        drop(left);
        let answered = timeout(TIMEOUT, store.tenant(&tenant)).await;
        assert!(matches!(answered, Ok(Ok(None))), "{answered:?}");
    }
}
