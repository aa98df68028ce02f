//! The golden store: the stored forms do not change, and the store keeps its meaning under later
//! rules and in a later schema.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use polynym_directory::model::unknown::fields;
use polynym_embedded::{Embedded, IntegritySession, Options, Supported, upgrade_to};
use polynym_identifier::Rules;
use redb::{Database, Key, ReadableDatabase, ReadableTable, TableDefinition, Value};
use tempfile::TempDir;

use super::support::golden::{
    self, compare, entries, fill, fill_inboxes, fill_shared_contents, later_rules, moved,
    of_the_present_rules, records, searchable, set_inbox_policies, untouched,
};
use super::{FILE, database, open};

/// The golden store, which lies beside a file with its rows.
const STORE: &str = "embedded-schema-12.redb";
const ROWS: &str = "embedded-schema-12.txt";

/// Returns a folder with a copy of the golden store.
fn golden_store() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(golden::file(STORE), folder.path().join(FILE)).unwrap();
    folder
}

pub const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Returns all rows of a store as stored, one per line, but for the key of tokens, which is random.
pub fn rows(folder: &Path) -> String {
    let database = database(folder);
    let mut text = String::new();
    dump::<&str, u64>(&database, "meta", &mut text);
    dump::<&str, &[u8]>(&database, "tenants", &mut text);
    dump::<&[u8; 16], &[u8]>(&database, "users", &mut text);
    dump::<&[u8], &[u8]>(&database, "identities", &mut text);
    dump::<&str, &[u8]>(&database, "requests", &mut text);
    dump::<(i64, &str), ()>(&database, "request_times", &mut text);
    dump::<(i64, &[u8; 16]), ()>(&database, "due", &mut text);
    dump::<(i64, &[u8]), ()>(&database, "hold_times", &mut text);
    dump::<(&str, &[u8; 16]), ()>(&database, "tenant_users", &mut text);
    dump::<(&str, u32), (i64, &str)>(&database, "attribute_names", &mut text);
    dump::<&[u8], ()>(&database, "attributes", &mut text);
    dump::<u64, &[u8]>(&database, "events", &mut text);
    dump::<(i64, u64), ()>(&database, "event_times", &mut text);
    dump::<(), u64>(&database, "next_event", &mut text);
    dump::<&[u8], &[u8]>(&database, "ended", &mut text);
    dump::<(&[u8; 16], u64), &[u8]>(&database, "inbox", &mut text);
    dump::<(&[u8; 16], &[u8; 16]), u64>(&database, "inbox_notices", &mut text);
    dump::<(i64, &[u8; 16], u64), ()>(&database, "inbox_times", &mut text);
    dump::<&[u8; 16], &[u8]>(&database, "inbox_contents", &mut text);
    dump::<(&[u8; 16], &[u8; 16]), ()>(&database, "inbox_content_users", &mut text);
    text
}

fn dump<K: Key + 'static, V: Value + 'static>(database: &Database, name: &str, text: &mut String) {
    let table = database.begin_read().unwrap().open_table(TableDefinition::<K, V>::new(name));
    let table = table.unwrap();
    for row in table.iter().unwrap() {
        let (key, value) = row.unwrap();
        let (key, value) = (key.value(), value.value());
        let (key, value) = (K::as_bytes(&key), V::as_bytes(&value));
        if name == "meta" && key.as_ref().starts_with(b"token_key") {
            continue;
        }
        let value = match name {
            "requests" => without_tenant_since(value.as_ref()),
            _ => value.as_ref().to_vec(),
        };
        writeln!(text, "{name} {} {}", key.as_ref().escape_ascii(), value.escape_ascii()).unwrap();
    }
}

/// The record of a request without since when its tenant exists: that of a new tenant has it.
fn without_tenant_since(record: &[u8]) -> Vec<u8> {
    fields(record).filter(|field| field.tag != 4).flat_map(|field| field.whole.to_vec()).collect()
}

#[tokio::test]
async fn stored_forms_do_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    fill(&store).await;
    set_inbox_policies(&store).await;
    fill_inboxes(&store).await;
    fill_shared_contents(&store).await;
    let (filled, notices) = (records(&store).await, entries(&store).await);
    drop(store);
    compare(ROWS, &rows(folder.path()));
    if golden::writes() {
        fs::copy(folder.path().join(FILE), golden::file(STORE)).unwrap();
    }
    let golden = golden_store();
    assert_eq!(rows(golden.path()), rows(folder.path()));
    let store = open(golden.path()).unwrap();
    assert_eq!((records(&store).await, entries(&store).await), (filled, notices));
    searchable(&store).await;
}

#[tokio::test]
async fn identities_of_a_store_move_to_later_rules() {
    let folder = golden_store();
    of_the_present_rules(&open(folder.path()).unwrap()).await;
    for _ in ["first", "again"] {
        let report = |line: &str| println!("{line}");
        upgrade_to(folder.path(), Supported::PRESENT.schema, later_rules(), &report).await.unwrap();
    }
    let supported = Supported { rules: later_rules().version(), ..Supported::PRESENT };
    untouched(&IntegritySession::open_supporting(folder.path(), supported).unwrap()).await;
    assert!(open(folder.path()).is_err(), "a program without these rules has opened it");
    let store = Embedded::open_supporting(folder.path(), Options::default(), supported).unwrap();
    moved(Arc::new(store).backend()).await;
}

#[tokio::test]
async fn repair_leaves_a_store_unchanged() {
    let folder = golden_store();
    let before = rows(folder.path());
    untouched(&IntegritySession::open(folder.path()).unwrap()).await;
    assert_eq!(rows(folder.path()), before);
}

/// A next schema raises the version, and leaves all else.
#[tokio::test]
async fn a_store_moves_to_the_next_schema() {
    let folder = golden_store();
    let supported = Supported { schema: Supported::PRESENT.schema + 1, ..Supported::PRESENT };
    let without_schema = |rows: String| -> Vec<String> {
        let rows = rows.lines().filter(|row| !row.starts_with("meta schema"));
        rows.map(str::to_owned).collect()
    };
    let before = without_schema(rows(folder.path()));
    for _ in ["first", "again"] {
        let report = |line: &str| println!("{line}");
        upgrade_to(folder.path(), supported.schema, Rules::PRESENT, &report).await.unwrap();
        assert_eq!(without_schema(rows(folder.path())), before);
    }
    let refused = open(folder.path()).err().expect("this program has opened it").to_string();
    assert!(refused.contains("use a newer program"), "{refused}");
    untouched(&IntegritySession::open_supporting(folder.path(), supported).unwrap()).await;
    let store = Embedded::open_supporting(folder.path(), Options::default(), supported).unwrap();
    searchable(&store).await;
}
