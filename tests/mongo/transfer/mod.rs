//! Imports and exports between stores, some on MongoDB.

mod directions;
mod ids;

use crate::calls::Client;
use crate::server::Server;
use crate::servers::{self, Databases};
use crate::support::output::assert_fails;
use crate::support::scenarios::exports::continue_after_each_token;
use crate::support::scenarios::transfer::names_are_limited;

#[tokio::test(flavor = "multi_thread")]
async fn a_name_beyond_the_limit_is_rejected_on_mongodb() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let uri = factory.uri().await;
    let work = move || {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&["--store", &uri]);
        names_are_limited(&server, folder.path().join("names.jsonl").to_str().unwrap());
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backup_command_refuses_mongodb() {
    let databases = Databases::of_set(servers::one_member().await, "");
    let factory = databases.factory();
    let uri = factory.uri().await;
    tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&["--store", &uri]);
        let file = folder.path().join("backup.redb");
        let output = server.run(&["backup", file.to_str().unwrap()]);
        assert_fails(&output, 1, &["BACKUP_UNSUPPORTED (FAILED_PRECONDITION)"]);
        assert!(!file.exists());
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_continue_after_each_token_on_mongodb() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let uri = factory.uri().await;
    let server = Server::start(&["--store", &uri]);
    continue_after_each_token(&mut Client::connect(&server.url).await).await;
}
