//! Golden stores: the stored forms are what they were, and an old store reads under later rules as what it is.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use polynym::store::embedded::Audit;
use redb::{Database, Key, ReadableDatabase, ReadableTable, TableDefinition, Value};
use tempfile::TempDir;

use super::support::golden::{self, compare, fill, moved, records, untouched};
use super::{FILE, open};

/// A store as the program wrote it that first had this schema, and what its rows are.
const STORE: &str = "embedded-schema-4.redb";
const ROWS: &str = "embedded-schema-4.txt";

/// A folder with the golden store.
fn golden_store() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(golden::file(STORE), folder.path().join(FILE)).unwrap();
    folder
}

/// All rows of a store, a line each, as they are stored.
fn rows(folder: &Path) -> String {
    let database = Database::open(folder.join(FILE)).unwrap();
    let mut text = String::new();
    dump::<&str, u64>(&database, "meta", &mut text);
    dump::<&str, &[u8]>(&database, "tenants", &mut text);
    dump::<&[u8; 16], &[u8]>(&database, "users", &mut text);
    dump::<&[u8], &[u8]>(&database, "identities", &mut text);
    dump::<&str, &[u8]>(&database, "requests", &mut text);
    dump::<(i64, &str), ()>(&database, "request_times", &mut text);
    dump::<(i64, &[u8; 16]), ()>(&database, "due", &mut text);
    dump::<(i64, &[u8]), ()>(&database, "hold_times", &mut text);
    text
}

fn dump<K: Key + 'static, V: Value + 'static>(database: &Database, name: &str, text: &mut String) {
    let table = database.begin_read().unwrap().open_table(TableDefinition::<K, V>::new(name)).unwrap();
    for row in table.iter().unwrap() {
        let (key, value) = row.unwrap();
        let (key, value) = (key.value(), value.value());
        let (key, value) = (K::as_bytes(&key), V::as_bytes(&value));
        writeln!(text, "{name} {} {}", key.as_ref().escape_ascii(), value.as_ref().escape_ascii()).unwrap();
    }
}

#[tokio::test]
async fn the_stored_forms_are_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    fill(&store).await;
    let filled = records(&store).await;
    drop(store);
    compare(ROWS, &rows(folder.path()));
    if golden::writes() {
        fs::copy(folder.path().join(FILE), golden::file(STORE)).unwrap();
    }
    let old = golden_store();
    assert_eq!(rows(old.path()), rows(folder.path()));
    assert_eq!(records(&open(old.path()).unwrap()).await, filled);
}

#[tokio::test]
async fn a_store_from_before_is_of_the_first_rules_whatever_the_program() {
    let folder = golden_store();
    let store = Arc::new(open(folder.path()).unwrap());
    moved(store).await;
}

#[tokio::test]
async fn mending_leaves_a_store_from_before_as_it_is() {
    let folder = golden_store();
    let before = rows(folder.path());
    untouched(&Audit::open(folder.path()).unwrap()).await;
    assert_eq!(rows(folder.path()), before);
}
