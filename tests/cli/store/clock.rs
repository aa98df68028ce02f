//! A server whose clock its store doubts: the log, the metric and `store status` show it, and
//! `store confirm-clock` ends the doubt.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use polynym_embedded::{Embedded, Options};
use tempfile::TempDir;
use tokio::time::sleep;
use tonic::Code;

use super::{stderr, stdout};
use crate::scrape::free_address;
use crate::server::{Server, polynym};
use crate::support::calls::{Client, handle};
use crate::support::scenarios::clocks::{DAY, Scene};
use crate::support::status::status_details;

/// A folder, and the last time that a server there has seen, relative to now.
struct Folder {
    folder: TempDir,
    store: String,
    /// A user that was deleted then.
    joe: String,
}

impl Folder {
    async fn seen(ahead: i64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        let joe = {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            let task = runtime.spawn(async move {
                let mut scene = Scene::at(Arc::new(store).backend(), ahead).await;
                let (joe, ann) =
                    (scene.create(handle("joe")).await, scene.create(handle("ann")).await);
                scene.client.delete(&joe).await.unwrap();
                scene.client.link(&ann, handle("anna")).await.unwrap();
                scene.client.unlink(&ann, handle("anna")).await.unwrap();
                joe
            });
            let joe = task.await.unwrap();
            // The store is closed once the server in this process is gone.
            runtime.shutdown_background();
            joe
        };
        let store = format!("embedded:{}", folder.path().display());
        for _ in 0..600 {
            if polynym(&["store", "status", "--store", &store]).output().unwrap().status.success() {
                return Self { folder, store, joe };
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("the folder is in use");
    }

    fn status(&self) -> String {
        stdout(&polynym(&["store", "status", "--store", &self.store]).output().unwrap())
    }

    fn confirm(&self) {
        let confirmed =
            polynym(&["store", "confirm-clock", "--store", &self.store]).output().unwrap();
        assert!(confirmed.status.success(), "{}", stderr(&confirmed));
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Starts a server, with its log in the folder; and a client, and where the metrics are.
    async fn serve(&self) -> (Server, Client, String) {
        let metrics = free_address().to_string();
        let mut command =
            polynym(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", &metrics]);
        command.stderr(File::create(self.folder.path().join("log")).unwrap());
        let server = Server::start_with(&mut command, &["--store", &self.store]);
        let client = Client::connect(&server.url).await;
        (server, client, metrics)
    }
}

/// Waits until the metric of the clock fits.
async fn until_metric(address: &str, fits: impl Fn(f64) -> bool) {
    for _ in 0..600 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("polynym_clock_ahead_seconds "));
        if line.is_some_and(|value| fits(value.parse().unwrap())) {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("the metric is not as it should be");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_far_ahead_expires_nothing_until_confirmed() {
    let folder = Folder::seen(-40 * DAY).await;
    assert!(folder.status().contains("in doubt: 40.0 days ahead"), "{}", folder.status());
    let (server, mut client, metrics) = folder.serve().await;
    until_metric(&metrics, |ahead| ahead > 3_400_000.0).await;
    let bob = client.create(Default::default()).await.unwrap().user_id;
    let refused = status_details(client.link(&bob, handle("anna")).await.unwrap_err());
    assert_eq!((refused.code, refused.reason.as_str()), (Code::Unavailable, "CLOCK_IN_DOUBT"));
    sleep(Duration::from_millis(2_500)).await;
    client.undelete(&folder.joe).await.unwrap();
    assert_eq!(folder.log().matches("the clock differs").count(), 1, "{}", folder.log());
    drop(server);
    folder.confirm();
    assert!(folder.status().contains("agrees with the last time seen"), "{}", folder.status());
    let (_server, mut client, metrics) = folder.serve().await;
    until_metric(&metrics, |ahead| ahead.abs() < 60.0).await;
    client.link(&bob, handle("anna")).await.unwrap();
    assert!(!folder.log().contains("the clock differs"), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_behind_is_in_doubt_until_confirmed() {
    let folder = Folder::seen(2 * DAY).await;
    assert!(folder.status().contains("in doubt: 2.0 days behind"), "{}", folder.status());
    let (server, mut client, metrics) = folder.serve().await;
    until_metric(&metrics, |ahead| ahead < -172_000.0).await;
    let bob = client.create(Default::default()).await.unwrap();
    assert_eq!(client.get(&bob.user_id).await.unwrap(), bob, "other calls succeed");
    assert!(folder.log().contains("the clock differs"), "{}", folder.log());
    drop(server);
    folder.confirm();
    let (_server, _, metrics) = folder.serve().await;
    until_metric(&metrics, |ahead| ahead.abs() < 60.0).await;
}
