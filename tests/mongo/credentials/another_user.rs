//! A file with MongoDB's URI: its changes replace the connections of a running server.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use tempfile::tempdir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::secured::{DATABASE, Secured, assert_no_password, run};
use crate::calls::{Client, handle, user};
use crate::scrape::{free_address, metrics};
use crate::server::{Server, polynym};

/// The time limit of everything that the server does by itself.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for a condition.
async fn until(condition: impl AsyncFn() -> bool) {
    let since = Instant::now();
    while !condition().await {
        assert!(since.elapsed() < TIMEOUT, "the condition does not hold");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Replaces a file at once.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, file).unwrap();
}

/// Callers of a server, until they are stopped.
struct Load {
    is_over: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts callers that look users up and create some. A call that fails is a panic.
    fn start(url: &str) -> Self {
        let (is_over, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let caller = |n: usize| {
            let (url, is_over, calls) = (url.to_owned(), is_over.clone(), calls.clone());
            tokio::spawn(async move {
                let mut client = Client::connect(&url).await;
                for created in 0.. {
                    let name = format!("user{n}x{created}");
                    client.create(user(&name, vec![handle(&name)])).await.unwrap();
                    for _ in 0..20 {
                        client.resolve(handle(&name)).await.unwrap();
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            })
        };
        let tasks = (0..8).map(caller).collect();
        Self { is_over, calls, tasks }
    }

    /// Waits for calls that begin after this.
    async fn go_on(&self) {
        let enough = self.calls.load(Ordering::Relaxed) + 500;
        until(async || {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a call has failed");
            self.calls.load(Ordering::Relaxed) > enough
        })
        .await;
    }

    /// Stops the callers, none of whose calls has failed.
    async fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

/// The number of connections of a user.
async fn connections_of(server: &Secured, name: &str) -> usize {
    let idle = doc! { "$currentOp": { "allUsers": true, "idleConnections": true } };
    let of_user = doc! { "$match": { "effectiveUsers.user": name } };
    let found = server.database("admin").aggregate([idle, of_user]).await.unwrap();
    found.try_collect::<Vec<Document>>().await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_uri_replaces_the_connections_and_no_call_fails() {
    let mongod = Secured::shared().await;
    let database = format!("{DATABASE}-another-user");
    let uri = |user: &str| mongod.uri(user, &database);
    assert!(run(&uri("root"), &["store", "init"]).status.success());
    mongod.create_user("first", &["root"]).await;

    let (folder, address) = (tempdir().unwrap(), free_address());
    let (file, log) = (folder.path().join("uri"), folder.path().join("log"));
    fs::write(&file, uri("first") + "\n").unwrap();
    let operators = format!("--admin-listen={address}");
    let mut command = polynym(&["serve", "--listen=127.0.0.1:0", &operators]);
    command.arg("--mongodb-uri-file").arg(&file).stderr(File::create(&log).unwrap());
    let server = Server::start_with(&mut command, &[]);
    let logged = async |text: &str| fs::read_to_string(&log).unwrap().contains(text);
    let is_broken = async |value: &str| {
        metrics(address).contains(&format!("\npolynym_mongodb_uri_broken {value}\n"))
    };
    let load = Load::start(&server.url);
    load.go_on().await;
    assert!(connections_of(mongod, "first").await > 8);

    // A user whom the database does not have yet, and then has.
    replace(&file, &uri("second"));
    until(async || logged("the changed URI of MongoDB cannot be used").await).await;
    assert!(is_broken("1").await);
    load.go_on().await;
    mongod.create_user("second", &["root"]).await;
    until(async || logged("connected to MongoDB by the changed URI").await).await;
    assert!(is_broken("0").await);
    load.go_on().await;
    assert!(connections_of(mongod, "second").await > 8);
    until(async || connections_of(mongod, "first").await == 0).await;
    mongod.admin(doc! { "dropUser": "first" }).await;
    load.go_on().await;

    // Another store.
    assert!(run(&mongod.uri("root", "another-store"), &["store", "init"]).status.success());
    replace(&file, &mongod.uri("second", "another-store"));
    until(async || logged("is another store").await).await;
    load.go_on().await;

    // A database without a store.
    replace(&file, &mongod.uri("second", "no-store"));
    until(async || logged("has no Polynym store").await).await;
    assert!(is_broken("1").await);
    load.go_on().await;
    load.stop().await;

    let in_use = r#"polynym_mongodb_connections{state="in_use"} "#;
    until(async || {
        let scraped = metrics(address);
        let value = scraped.lines().find_map(|line| line.strip_prefix(in_use)).unwrap();
        let value: f64 = value.parse().unwrap();
        assert!(value >= 0.0, "{value}");
        value == 0.0
    })
    .await;
    let servers = mongod.database(&database).collection::<Document>("servers");
    assert_eq!(servers.count_documents(doc! {}).await.unwrap(), 1, "it is one server still");
    server.signal("TERM");
    assert!(server.wait().success());
    assert_no_password(&fs::read_to_string(&log).unwrap());
    assert_eq!(servers.count_documents(doc! {}).await.unwrap(), 0);
}
