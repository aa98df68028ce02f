//! A golden store of the second rules: `store upgrade` moves it to the present ones, in every case
//! and from any point of an interrupted run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use polynym_directory::Backend;
use polynym_embedded::{IntegritySession, OpenError, upgrade};
use polynym_identifier::Rules;
use tempfile::TempDir;

use super::golden::{META, empty_store, rows};
use super::{FILE, database, open};
use crate::server::{Server, polynym};
use crate::support::golden::{self, compare, records, untouched};
use crate::support::second_rules::{
    assert_collision, assert_moved, assert_second, collide, fill, resolve_collision,
};
use crate::users::id;

const STORE: &str = "embedded-rules-2.redb";
const ROWS: &str = "embedded-rules-2.txt";

/// Returns a folder with a new store of the second rules, and of the schema of their time.
async fn filled() -> TempDir {
    let folder = empty_store(9);
    let transaction = database(folder.path()).begin_write().unwrap();
    transaction
        .open_table(META)
        .unwrap()
        .insert("rules", u64::from(Rules::SECOND.version()))
        .unwrap();
    transaction.commit().unwrap();
    fill(&open(folder.path()).unwrap()).await;
    folder
}

/// Returns a folder with a copy of the golden store.
fn golden_store() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(golden::file(STORE), folder.path().join(FILE)).unwrap();
    folder
}

fn backend(folder: &Path) -> Backend {
    Arc::new(open(folder).unwrap()).backend()
}

/// Returns what a dry run on a server shows.
fn renormalized_json(folder: &Path) -> serde_json::Value {
    let server = Server::start(&["--store", &format!("embedded:{}", folder.display())]);
    let output = server.run(&["renormalize", "--dry-run", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn upgraded(folder: &Path) -> Result<(), OpenError> {
    upgrade(folder, &|line| println!("{line}")).await
}

async fn assert_upgraded(folder: &Path) {
    untouched(&IntegritySession::open(folder).unwrap()).await;
    assert_moved(backend(folder)).await;
    untouched(&IntegritySession::open(folder).unwrap()).await;
}

#[tokio::test]
async fn a_store_of_the_second_rules_is_moved_in_every_case() {
    let new = filled().await;
    compare(ROWS, &rows(new.path()));
    if golden::writes() {
        fs::copy(new.path().join(FILE), golden::file(STORE)).unwrap();
    }
    let folder = golden_store();
    assert_second(backend(folder.path())).await;
    for _ in ["first", "again"] {
        upgraded(folder.path()).await.unwrap();
    }
    assert_upgraded(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collision_blocks_the_move_and_shows_both_identities() {
    let folder = golden_store();
    collide(&open(folder.path()).unwrap()).await;
    let before = records(&open(folder.path()).unwrap()).await;
    let error = upgraded(folder.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::Unmovable { count: 1, .. }), "{error}");
    assert_eq!(records(&open(folder.path()).unwrap()).await, before);
    assert_collision(backend(folder.path())).await;
    let shown = renormalized_json(folder.path());
    let problem = &shown["problems"][0];
    let mut users = [("userId", "identifier"), ("otherUserId", "otherIdentifier")]
        .map(|(user, identifier)| (problem[user].as_str(), problem[identifier]["url"].as_str()));
    users.sort_unstable();
    let [one, other] = [1, 2].map(|n| id(n).to_string());
    let expected = [(one, "https://x.com/ann"), (other, "https://x.com/@ann")];
    assert_eq!(users, expected.each_ref().map(|(user, url)| (Some(&**user), Some(*url))));
    assert_eq!(problem["newIdentifier"]["url"], "https://x.com/ann");
    assert_eq!((&shown["kept"], &shown["failed"]), (&"5".into(), &"1".into()));

    resolve_collision(&open(folder.path()).unwrap()).await;
    upgraded(folder.path()).await.unwrap();
    assert_upgraded(folder.path()).await;
}

/// The process is killed once it has moved the identities of the first tenant, or before.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_half_way_is_completed_by_the_next() {
    for point in ["can be moved", "were moved"] {
        let folder = golden_store();
        let name = format!("embedded:{}", folder.path().display());
        let mut command = polynym(&["store", "upgrade", "--store", &name]);
        let mut killed = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
        assert!(lines.map(Result::unwrap).any(|line| line.contains(point)), "{point}");
        let _ = killed.kill();
        killed.wait().unwrap();

        assert_second(backend(folder.path())).await;
        upgraded(folder.path()).await.unwrap();
        assert_upgraded(folder.path()).await;
    }
}

/// A run that stops between the two tenants of the store.
#[tokio::test]
async fn a_half_moved_store_is_served_and_completed() {
    let folder = golden_store();
    let path = folder.path().to_owned();
    let stop = |line: &str| assert!(!line.contains("were moved"), "stopped on purpose");
    let stopped = tokio::spawn(async move { upgrade(&path, &stop).await }).await;
    assert!(stopped.unwrap_err().is_panic());
    assert_second(backend(folder.path())).await;
    upgraded(folder.path()).await.unwrap();
    assert_upgraded(folder.path()).await;
}
