//! Two servers with caches on one replica set.

use std::time::{Duration, Instant};

use polynym_proto::v1::{self, Consistency};
use tokio::task::spawn_blocking;

use super::Databases;
use crate::calls::{Client, handle, identity};
use crate::scrape::{documented, free_address, kinds, metrics};
use crate::server::Server;
use crate::servers::one_member;

/// The accepted age: the machine must make some calls within it.
const AGE: Duration = Duration::from_secs(5);

async fn start(uri: &str, more: &[&str]) -> (Server, Client) {
    let arguments = [&["--store", uri, "--lookup-cache", "8MiB"], more].concat();
    let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
    let start = move || Server::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let server = spawn_blocking(start).await.unwrap();
    let client = Client::connect(&server.url).await;
    (server, client)
}

/// The name of the owner of a handle, and the number of reads.
async fn resolve(
    client: &mut Client,
    name: &str,
    age: Duration,
    consistency: Consistency,
) -> (Option<String>, u32) {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(handle(name)),
        max_staleness: (!age.is_zero()).then(|| age.try_into().unwrap()),
        consistency: consistency.into(),
        ..Default::default()
    };
    match client.directory.resolve_identity(request).await {
        Ok(found) => {
            let reads =
                found.metadata().get("polynym-reads").unwrap().to_str().unwrap().parse().unwrap();
            (Some(found.into_inner().user.unwrap().display_name), reads)
        }
        Err(status) => {
            assert_eq!(status.code(), tonic::Code::NotFound, "{status:?}");
            (None, 0)
        }
    }
}

async fn create(client: &mut Client, name: &str) -> v1::User {
    let user = v1::User {
        display_name: name.to_owned(),
        identities: vec![identity(handle(name))],
        ..Default::default()
    };
    client.create(user).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_other_servers_are_seen_within_the_age() {
    let factory = Databases::of_set(one_member().await, "").factory();
    factory.mongo().await.unwrap().close().await;
    let uri = factory.uri().await;
    let ((_a, mut a), (_b, mut b)) = (start(&uri, &[]).await, start(&uri, &[]).await);
    // Without an etag, updates apply to the current user.
    let mut user = v1::User { etag: String::new(), ..create(&mut b, "ada").await };
    let latest = Consistency::Latest;

    let sent = Instant::now();
    assert_eq!(resolve(&mut a, "ada", AGE, latest).await.0.as_deref(), Some("ada"));
    assert_eq!(resolve(&mut a, "nobody", AGE, latest).await.0, None);
    let read = Instant::now();
    user.display_name = "Ada".to_owned();
    b.update(user.clone(), &["display_name"]).await.unwrap();
    create(&mut b, "nobody").await;

    let cached = resolve(&mut a, "ada", AGE, latest).await;
    if sent.elapsed() < AGE {
        assert_eq!(cached, (Some("ada".to_owned()), 0), "from the cache");
    }
    for (age, consistency) in [(Duration::ZERO, latest), (AGE, Consistency::Linearizable)] {
        let found = resolve(&mut a, "ada", age, consistency).await;
        assert!(found.0.as_deref() == Some("Ada") && found.1 > 0, "{consistency:?}: {found:?}");
        assert!(resolve(&mut a, "nobody", age, consistency).await.0.is_some());
    }
    tokio::time::sleep(AGE.saturating_sub(read.elapsed())).await;
    assert_eq!(resolve(&mut a, "ada", AGE, latest).await.0.as_deref(), Some("Ada"));
    assert_eq!(resolve(&mut a, "nobody", AGE, latest).await.0.as_deref(), Some("nobody"));

    for n in 0..20 {
        user.display_name = format!("Ada {n}");
        a.update(user.clone(), &["display_name"]).await.unwrap();
        let found = resolve(&mut a, "ada", AGE, latest).await;
        assert_eq!(found.0, Some(user.display_name.clone()), "own changes are seen immediately");
    }
    a.unlink(&user.user_id, handle("ada")).await.unwrap();
    assert_eq!(resolve(&mut a, "ada", AGE, latest).await.0, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn hits_misses_and_ages_are_counted() {
    let factory = Databases::of_set(one_member().await, "").factory();
    factory.mongo().await.unwrap().close().await;
    let address = free_address();
    let (_server, mut client) =
        start(&factory.uri().await, &["--admin-listen", &address.to_string()]).await;
    create(&mut client, "ada").await;
    for _ in 0..3 {
        resolve(&mut client, "ada", Duration::from_secs(3_600), Consistency::Latest).await;
    }
    let scraped = metrics(address);
    for line in [
        r#"polynym_lookup_cache_lookups_total{outcome="hit"} 2"#,
        r#"polynym_lookup_cache_lookups_total{outcome="miss"} 1"#,
        "polynym_lookup_cache_age_seconds_count 2",
    ] {
        assert!(scraped.lines().any(|served| served == line), "{line} is not in\n{scraped}");
    }
    let of_cache = |(name, _): &(String, String)| name.starts_with("polynym_lookup_cache");
    let served: Vec<_> = kinds(&scraped).into_iter().filter(of_cache).collect();
    assert_eq!(served, documented().into_iter().filter(of_cache).collect::<Vec<_>>());
    assert_eq!(served.len(), 3);
}
