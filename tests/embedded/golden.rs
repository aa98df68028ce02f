//! Golden stores: the stored forms do not change, and an old store keeps its meaning under later
//! rules.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use polynym_directory::model::unknown::fields;
use polynym_embedded::{Embedded, IntegritySession, Options, upgrade_to};
use polynym_identifier::Rules;
use redb::{
    Database, Key, ReadableDatabase, ReadableTable, TableDefinition, TableError, TableHandle, Value,
};
use tempfile::TempDir;

use super::support::golden::{
    self, compare, fill, fill_inboxes, fill_shared_contents, later_rules, moved,
    of_the_first_rules, records, searchable, set_inbox_policies, untouched,
};
use super::{FILE, database, open};
use crate::support::users::id;
use locality_uuid::LocalityId;

/// The schema versions of the golden stores, oldest first. Each store was written by the first
/// program with its schema, and lies beside a file with its rows.
const VERSIONS: [u64; 7] = [4, 5, 6, 7, 8, 9, 10];
const NEWEST: u64 = VERSIONS[VERSIONS.len() - 1];

fn store_of(version: u64) -> String {
    format!("embedded-schema-{version}.redb")
}

fn rows_of(version: u64) -> String {
    format!("embedded-schema-{version}.txt")
}

/// Returns a folder with a copy of a golden store.
fn golden_store(version: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(golden::file(&store_of(version)), folder.path().join(FILE)).unwrap();
    folder
}

/// Returns a folder with an empty store of this schema version and of the first rules.
pub fn empty_store(version: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let transaction = database(folder.path()).begin_write().unwrap();
    let mut meta = transaction.open_table(META).unwrap();
    meta.insert("rules", u64::from(Rules::FIRST.version())).unwrap();

    meta.insert("schema", version).unwrap();
    let is_newer = |name: &str| {
        version < JOURNALED && JOURNAL.contains(&name)
            || version < INBOXED && INBOX.contains(&name)
            || version < SHARING && SHARED.contains(&name)
    };
    let tables: Vec<_> = transaction.list_tables().unwrap().collect();
    for table in tables.into_iter().filter(|table| is_newer(table.name())) {
        assert!(transaction.delete_table(table).unwrap());
    }
    if version < 6 {
        transaction.delete_table(ATTRIBUTE_NAMES).unwrap();
        transaction.delete_table(ATTRIBUTES).unwrap();
    }
    if version < 5 {
        meta.remove("rules").unwrap();
        transaction.delete_table(TENANT_USERS).unwrap();
    }

    drop(meta);
    transaction.commit().unwrap();
    folder
}

/// The list of each tenant's users, absent in the oldest store.
const TENANT_USERS: TableDefinition<'_, (&str, &[u8; 16]), ()> =
    TableDefinition::new("tenant_users");
/// The first schema with a journal, and the tables of that.
const JOURNALED: u64 = 7;
const JOURNAL: [&str; 4] = ["events", "event_times", "next_event", "ended"];
/// The first schema with inboxes, and the tables of those.
const INBOXED: u64 = 8;
const INBOX: [&str; 3] = ["inbox", "inbox_notices", "inbox_times"];
/// The first schema in which notices share their contents, and the tables of those.
const SHARING: u64 = 9;
const SHARED: [&str; 2] = ["inbox_contents", "inbox_content_users"];
/// The names of attributes and their index, absent in older stores.
const ATTRIBUTE_NAMES: TableDefinition<'_, (&str, u32), (i64, &str)> =
    TableDefinition::new("attribute_names");
const ATTRIBUTES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("attributes");
pub const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Returns all rows of a store as stored, one per line, but for the key of tokens, which is random.
/// Older stores do not have all tables.
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
    let is_new = ["tenant_users", "attribute_names", "attributes"].contains(&name)
        || [&JOURNAL[..], &INBOX, &SHARED].concat().contains(&name);
    if is_new && matches!(table, Err(TableError::TableDoesNotExist(_))) {
        return;
    }

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

/// The record of a request without since when its tenant exists: an addition that older programs
/// ignore.
fn without_tenant_since(record: &[u8]) -> Vec<u8> {
    fields(record).filter(|field| field.tag != 4).flat_map(|field| field.whole.to_vec()).collect()
}

/// Older programs kept a made-up user id with the requests of tenants, where the present one keeps
/// the nil UUID.
fn without_made_up_subjects(rows: &str) -> String {
    let stored = |id: &LocalityId| id.as_bytes().escape_ascii().to_string();
    let nil = stored(&LocalityId::from([0; 16]));
    [100, 101].into_iter().fold(rows.to_owned(), |rows, n| rows.replace(&stored(&id(n)), &nil))
}

/// The rows but for the version, and but for tenants, which say when their history began.
fn without_history(rows: &str) -> Vec<&str> {
    let is_kept = |row: &&str| !row.starts_with("meta schema") && !row.starts_with("tenants");
    rows.lines().filter(is_kept).collect()
}

#[tokio::test]
async fn stored_forms_do_not_change() {
    for version in VERSIONS {
        let folder = empty_store(version);
        let store = open(folder.path()).unwrap();
        fill(&store).await;
        if version >= INBOXED {
            set_inbox_policies(&store).await;
            fill_inboxes(&store).await;
        }
        if version >= SHARING {
            fill_shared_contents(&store).await;
        }
        let filled = records(&store).await;
        drop(store);
        compare(&rows_of(version), &rows(folder.path()));
        if golden::writes() && version == NEWEST {
            fs::copy(folder.path().join(FILE), golden::file(&store_of(version))).unwrap();
        }
        let old = golden_store(version);
        assert_eq!(without_made_up_subjects(&rows(old.path())), rows(folder.path()));
        assert_eq!(records(&open(old.path()).unwrap()).await, filled);
    }
}

#[tokio::test]
async fn an_older_store_keeps_the_first_rules_until_upgraded() {
    for version in VERSIONS {
        let folder = golden_store(version);
        of_the_first_rules(&open(folder.path()).unwrap()).await;
        for _ in ["first", "again"] {
            upgrade_to(folder.path(), later_rules(), &|line| println!("{line}")).await.unwrap();
        }
        let rules = later_rules().version();
        untouched(&IntegritySession::open_supporting(folder.path(), rules).unwrap()).await;
        assert!(open(folder.path()).is_err(), "a program without these rules has opened it");
        moved(
            Arc::new(Embedded::open_supporting(folder.path(), Options::default(), rules).unwrap())
                .backend(),
        )
        .await;
    }
}

#[tokio::test]
async fn repair_leaves_an_older_store_unchanged() {
    for version in VERSIONS {
        let folder = golden_store(version);
        let before = rows(folder.path());
        untouched(&IntegritySession::open(folder.path()).unwrap()).await;
        assert_eq!(rows(folder.path()), before);
    }
}

/// The rows of words of names and domains, which stores have from version 9 on.
fn derived(rows: &str) -> Vec<&str> {
    rows.lines().filter(|row| is_derived(row)).collect()
}

fn without_derived(rows: &str) -> String {
    rows.lines().filter(|row| !is_derived(row)).flat_map(|row| [row, "\n"]).collect()
}

fn is_derived(row: &str) -> bool {
    row.starts_with("attributes ")
        && [r"\xff\xff\xfc", r"\xff\xff\xfb"].iter().any(|id| row.contains(id))
}

#[tokio::test]
async fn every_store_is_upgraded_to_the_newest_version() {
    for version in VERSIONS {
        let folder = golden_store(version);
        // Before the journal, upgraded stores have the same rows.
        let golden_rows = |version| fs::read_to_string(golden::file(&rows_of(version))).unwrap();
        let like = without_derived(&golden_rows(version.max(JOURNALED - 1)));
        for _ in ["first", "again"] {
            upgrade_to(folder.path(), Rules::FIRST, &|line| println!("{line}")).await.unwrap();
            let found = without_made_up_subjects(&rows(folder.path()));
            match version {
                NEWEST => compare(&rows_of(NEWEST), &found),
                _ => {
                    let rows = without_derived(&found);
                    assert_eq!(without_history(&rows), without_history(&like));
                    assert_eq!(derived(&found), derived(&golden_rows(NEWEST)));
                }
            }
        }
        untouched(&IntegritySession::open(folder.path()).unwrap()).await;
        searchable(&open(folder.path()).unwrap()).await;
    }
}
