//! Connections stay on a core, and cores share them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::Version;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym::grpc;
use polynym_access::Access;
use polynym_deliver::AddressPolicy;
use polynym_directory::{
    Backend, Consistency, Directory, EncodedUser, Error, ItemResult, Limits, LookUps, Resolved,
    Tenant, View,
};
use polynym_embedded::Embedded;
use polynym_identifier::IdentityKey;
use polynym_proto::v1;
use polynym_transport::{Listeners, Options};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Id, Runtime};
use tokio::sync::oneshot;

use crate::server::Server;
use crate::support::calls::{Client, handle};
use crate::support::http::HttpClient;

const BATCH: &str = "/polynym.v1.DirectoryService/BatchResolveIdentities";

/// A store that counts its look-ups by runtime, and finds nobody after a pause.
#[derive(Default)]
struct Counting(Mutex<HashMap<Id, usize>>);

#[async_trait]
impl LookUps for Counting {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        _: Consistency,
        _: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        let before = Handle::current().id();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(Handle::current().id(), before, "a call stays on its core");
        *self.0.lock().unwrap().entry(before).or_default() += 1;
        Ok(Resolved { found: keys.iter().map(|_| Ok(None)).collect(), reads: 1 })
    }

    async fn get(
        &self,
        _: &Tenant,
        ids: &[LocalityId],
        _: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        Ok(ids.iter().map(|_| Ok(None)).collect())
    }
}

#[tokio::test]
async fn connections_are_spread_over_the_cores_and_drain_on_them() {
    let cores: Vec<_> = (0..3)
        .map(|_| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
        .collect();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", tcp.local_addr().unwrap());
    let listeners =
        Listeners { cores: cores.iter().map(|core| core.handle().clone()).collect(), ..tcp.into() };
    let folder = tempfile::tempdir().unwrap();
    let whole = Arc::new(Embedded::open(folder.path(), Default::default()).unwrap()).backend();
    let store = Arc::new(Counting::default());
    let backend = Backend { lookups: store.clone(), ..whole };
    let directory = Directory::new(backend, Generator::new(Mode::Variable), Limits::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(grpc::serve(
        listeners,
        Arc::new(directory),
        Arc::new(Access::open()),
        Options::default(),
        AddressPolicy::default(),
        Arc::default(),
        async { drop(stopped.await) },
    ));

    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let mut client = Client::connect(&url).await;
        calls.spawn(async move {
            for _ in 0..5 {
                client.resolve(handle("nobody")).await.unwrap_err();
            }
            client
        });
    }
    let clients = calls.join_all().await;
    let counts = store.0.lock().unwrap().clone();
    for core in &cores {
        assert_eq!(counts[&core.handle().id()], 10, "two of six connections: {counts:?}");
    }
    assert_eq!(counts.len(), 3, "none elsewhere: {counts:?}");

    // A call in flight is answered before the server stops.
    let [mut last, ..] = <[Client; 6]>::try_from(clients).ok().unwrap();
    let call = tokio::spawn(async move { last.resolve(handle("nobody")).await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    stop.send(()).unwrap();
    assert_eq!(call.await.unwrap().unwrap_err().code(), tonic::Code::NotFound);
    serving.await.unwrap().unwrap();
    cores.into_iter().for_each(Runtime::shutdown_background);
}

/// Large batches on a connection to a server with one core, beside single look-ups on another.
#[tokio::test]
async fn large_batches_do_not_hold_up_their_core() {
    let server = Server::start(&["--sample", "--threads", "1"]);
    let url = server.url.clone();
    let greedy = tokio::spawn(async move {
        let client = Client::connect(&url).await;
        let identifiers = (0..1_000).map(|n| handle(&format!("nobody-{n}"))).collect();
        let request = v1::BatchResolveIdentitiesRequest { identifiers, ..Default::default() };
        let batch = || {
            let (mut directory, request) = (client.directory.clone(), request.clone());
            async move { directory.batch_resolve_identities(request).await.map(drop) }
        };
        let loops = (0..8).map(|_| async {
            loop {
                batch().await.unwrap();
            }
        });
        futures_util::future::join_all(loops).await
    });

    let mut client = Client::connect(&server.url).await;
    let median = median_time(&mut client, Duration::from_secs(2)).await;
    assert!(!greedy.is_finished());
    assert!(median < Duration::from_millis(50), "{median:?}");
}

/// Large messages as JSON on four connections to a server with one core, beside single look-ups.
#[tokio::test]
async fn large_messages_as_json_do_not_hold_up_their_core() {
    let options = ["--sample", "--threads", "1", "--http-listen", "127.0.0.1:0"];
    let mut server = Server::start(&options);
    let url = server.http_url();
    let mut client = Client::connect(&server.url).await;
    let period = Duration::from_millis(500);
    let alone = median_time(&mut client, period).await;
    let greedy = tokio::spawn(async move {
        let names =
            (0..1_000).map(|n| json!({ "handle": format!("nobody-{n}-{}", "x".repeat(90)) }));
        let request = json!({ "identifiers": names.collect::<Vec<_>>() }).to_string();
        let loops = (0..4).map(async |_| {
            let mut client = HttpClient::connect(&url, Version::HTTP_2).await;
            loop {
                let answer = client.post(BATCH, "application/json", &[], request.clone()).await;
                assert!(answer.body.len() > 64 << 10, "{} bytes", answer.body.len());
            }
        });
        futures_util::future::join_all(loops).await
    });
    // Other tests may disturb some of the attempts.
    let mut medians = Vec::new();
    while medians.last().is_none_or(|median| *median > 4 * alone) {
        assert!(medians.len() < 12, "{alone:?} alone, {medians:?} beside");
        medians.push(median_time(&mut client, period).await);
        assert!(!greedy.is_finished());
    }
    println!("{alone:?} alone, {medians:?} beside");
}

/// The median time of look-ups, one after the other.
async fn median_time(client: &mut Client, period: Duration) -> Duration {
    let (mut times, begun) = (Vec::new(), Instant::now());
    while begun.elapsed() < period {
        let before = Instant::now();
        client.resolve(handle("nobody")).await.unwrap_err();
        times.push(before.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}
