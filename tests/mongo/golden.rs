//! Golden stores: documents do not change, and an old store keeps its meaning under later rules.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use polynym_identifier::Rules;
use polynym_mongodb::{InitOptions, IntegritySession, Mongo, Options, Supported, init, upgrade_to};

use super::servers;
use super::support::golden::{
    self, compare, entries, fill, fill_inboxes, later_rules, moved, of_the_first_rules, records,
    searchable, set_inbox_policies, untouched,
};

/// The schema versions of the golden stores, oldest first. Each was written by the first program
/// with its schema. Versions 4, 6, 9, 11 and 13 are of stores in the middle of an upgrade.
pub const VERSIONS: [i64; 8] = [2, 3, 5, 7, 8, 10, 12, 14];
const NEWEST: i64 = VERSIONS[VERSIONS.len() - 1];

fn store_of(version: i64) -> String {
    format!("mongodb-schema-{version}.txt")
}

/// The collections of that store.
const COLLECTIONS: [&str; 10] = [
    "meta",
    "users",
    "identities",
    "requests",
    "tenants",
    "names",
    "journal",
    "ended",
    "inbox",
    "notices",
];

/// The collections that stores get before their upgrade to a version with a journal.
const HISTORY: [&str; 2] = ["journal", "ended"];
/// The first version with inboxes, and the first in which notices are rows. Between them they were
/// documents of `inbox`, which programs only move.
const BUCKETED: i64 = 8;
const ROWED: i64 = 12;

/// A line with a document: its bytes, and a readable form.
fn line(document: &Document) -> String {
    let bytes = RawDocumentBuf::try_from(document).unwrap().into_bytes();
    format!("{} {document}\n", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The document with revision 0, because revisions are random; without the key of tokens, which is
/// random, too, and the confirmations of the epoch, whose number varies; and with sorted fields,
/// because MongoDB chooses the order of added ones.
fn plain(mut document: Document) -> Document {
    if matches!(document.get("r"), Some(Bson::Int64(_))) {
        document.insert("r", 0_i64);
    }
    document.remove("c");
    if document.get_str("_id").is_ok_and(|id| id == "schema") {
        document.remove("k");
    }
    if let Some(rules) = document.remove("n") {
        let epoch = document.remove("e");
        document.extend(
            [("n".to_owned(), rules)].into_iter().chain(epoch.map(|epoch| ("e".to_owned(), epoch))),
        );
    }
    document
}

/// The document of a line.
fn document(line: &str) -> Document {
    let hex = line.split(' ').next().unwrap();
    let byte = |n: usize| u8::from_str_radix(&hex[n..n + 2], 16).unwrap();
    let bytes = (0..hex.len()).step_by(2).map(byte).collect();
    Document::try_from(RawDocumentBuf::from_bytes(bytes).unwrap()).unwrap()
}

/// The first batch of a cursor.
async fn batch(database: &Database, command: Document) -> Vec<Document> {
    let reply = database.run_command(command).await.unwrap();
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().map(|document| document.as_document().unwrap().clone()).collect()
}

/// The ids of all users, as bytes.
async fn users_of(database: &Database) -> HashSet<Vec<u8>> {
    let users = database.collection::<Document>("users").find(doc! {}).await.unwrap();
    let users: Vec<_> = users.try_collect().await.unwrap();
    users.iter().map(|user| user_of(user).to_vec()).collect()
}

/// The user's id in the `_id` of a document.
fn user_of(document: &Document) -> &[u8] {
    match document.get("_id") {
        Some(Bson::Binary(id)) => &id.bytes[..16],
        other => panic!("{other:?}"),
    }
}

/// A database as text: the options of each collection, then its documents. Events of tenants are
/// left out: their ids are random, and some stores have none.
pub async fn dump(database: &Database) -> String {
    let mut text = String::new();
    let meta = database.collection::<Document>("meta");
    let versions = meta.find_one(doc! { "_id": "schema" }).await.unwrap();
    let version = versions.map_or(0, |versions| versions.get_i64("v").unwrap());
    let users: HashSet<_> = users_of(database).await;
    for name in COLLECTIONS {
        let listed =
            batch(database, doc! { "listCollections": 1, "filter": { "name": name } }).await;
        // Older stores have fewer.
        let Some(listed) = listed.first() else { continue };
        let mut options = listed.get_document("options").unwrap().clone();
        // A changed validator states the defaults.
        options.remove("validationAction");
        let indexes = batch(database, doc! { "listIndexes": name }).await;
        let first = database.collection::<Document>(name).find_one(doc! {}).await.unwrap();
        let is_new = version < 7 && HISTORY.contains(&name) || version < ROWED && name == "notices";
        if first.is_none() && (name == "names" || is_new) {
            continue;
        }
        text += &line(&doc! { "collection": name, "options": options, "indexes": indexes });
        let collection = database.collection::<Document>(name);
        let documents = collection.find(doc! {}).sort(doc! { "_id": 1 }).await.unwrap();
        let mut documents: Vec<_> = documents.try_collect().await.unwrap();
        if name == "journal" {
            documents.retain(|document| users.contains(user_of(document)));
        }
        if name == "requests" {
            // Since when their tenant exists: an addition that older programs ignore.
            documents.iter_mut().for_each(|document| drop(document.remove("a")));
        }
        text.extend(documents.into_iter().map(plain).map(|document| line(&document)));
    }
    text
}

/// Restores a database from the text of [`dump`].
pub async fn restore<'l>(database: &Database, lines: impl Iterator<Item = &'l str>) {
    let mut collection = String::new();
    for document in lines.map(document) {
        let Ok(name) = document.get_str("collection") else {
            database.collection(&collection).insert_one(document).await.unwrap();
            continue;
        };
        collection = name.to_owned();
        let mut create = doc! { "create": name };
        create.extend(document.get_document("options").unwrap().clone());
        database.run_command(create).await.unwrap();
        let mut indexes = document.get_array("indexes").unwrap().clone();
        let is_clustered = |index: &Bson| index.as_document().unwrap().contains_key("clustered");
        indexes.retain(|index| !is_clustered(index));
        database.run_command(doc! { "createIndexes": name, "indexes": indexes }).await.unwrap();
    }
}

/// Whether a line belongs to an empty store: a collection, or the versions.
fn is_of_empty(line: &&str) -> bool {
    is_frame(&document(line))
}

fn is_frame(document: &Document) -> bool {
    document.contains_key("collection") || document.get_str("_id").is_ok_and(|id| id == "schema")
}

fn text_of(version: i64) -> String {
    std::fs::read_to_string(golden::file(&store_of(version))).unwrap()
}

/// The lines of a store except those of its inboxes.
pub fn outside_inboxes(text: &str) -> Vec<Document> {
    let mut is_inbox = false;
    let mut lines: Vec<_> = text.lines().map(document).collect();
    lines.retain(|line| {
        let collection = line.get_str("collection");
        is_inbox = collection.map_or(is_inbox, |name| name == "inbox");
        !is_inbox
    });
    lines
}

/// A database with a golden store, and its URI.
pub async fn golden_store(version: i64, name: &str) -> (Database, String) {
    let (set, name) = (servers::one_member().await, format!("{name}_{version}"));
    let database = set.client().await.database(&name);
    restore_golden(&database, version).await;
    (database, set.uri(&name, ""))
}

/// Creates a golden store in an empty database.
pub async fn restore_golden(database: &Database, version: i64) {
    restore(database, text_of(version).lines()).await;
}

/// The database `name` of a set, with an empty store of an older version.
pub async fn empty_store(
    set: &servers::ReplicaSet,
    version: i64,
    name: &str,
) -> (Database, String) {
    let database = set.client().await.database(name);
    restore(&database, text_of(version).lines().filter(is_of_empty)).await;
    (database, set.uri(name, ""))
}

/// The database `name` of a set, with an empty store of this program, of the first rules.
async fn new_store(set: &servers::ReplicaSet, name: &str) -> (Database, String) {
    let (database, uri) = (set.client().await.database(name), set.uri(name, ""));
    init(&uri, &InitOptions::default(), &|line| println!("{line}")).await.unwrap();
    let rules = doc! { "$set": { "n": i64::from(Rules::FIRST.version()) } };
    database.collection::<Document>("meta").update_one(doc! {}, rules).await.unwrap();
    (database, uri)
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_forms_do_not_change() {
    let (filled, uri) = match golden::writes() {
        true => new_store(servers::one_member().await, "golden_new").await,
        false => empty_store(servers::one_member().await, NEWEST, "golden_new").await,
    };
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    fill(&store).await;
    set_inbox_policies(&store).await;
    fill_inboxes(&store).await;
    compare(&store_of(NEWEST), &dump(&filled).await);
    let expected = records(&store).await;
    for version in VERSIONS {
        let (database, uri) = golden_store(version, "golden").await;
        let golden = Mongo::open(&uri, Options::default()).await.unwrap();
        assert_eq!(records(&golden).await, expected);
        assert!(dump(&database).await == text_of(version), "opening changed it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_to_an_older_store_have_its_form() {
    for version in &VERSIONS[..VERSIONS.len() - 1] {
        let (database, uri) =
            empty_store(servers::one_member().await, *version, &format!("golden_older{version}"))
                .await;
        let store = Mongo::open(&uri, Options::default()).await.unwrap();
        fill(&store).await;
        if *version >= BUCKETED {
            set_inbox_policies(&store).await;
        }
        if *version >= ROWED {
            fill_inboxes(&store).await;
        }
        assert_eq!(outside_inboxes(&dump(&database).await), outside_inboxes(&text_of(*version)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_store_keeps_the_first_rules() {
    // Upgrades mostly wait.
    join_all(VERSIONS.map(keeps_the_first_rules)).await;
}

async fn keeps_the_first_rules(version: i64) {
    let (_, uri) = golden_store(version, "golden_moved").await;
    of_the_first_rules(&Mongo::open(&uri, Options::default()).await.unwrap()).await;
    upgrade_to(&uri, later_rules(), &|line| println!("{line}")).await.unwrap();
    let supported = Supported { rules: later_rules().version(), ..Supported::PRESENT };
    let audit = IntegritySession::open_supporting(&uri, supported).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
    let store = Mongo::open_supporting(&uri, Options::default(), supported).await.unwrap();
    moved(Arc::new(store).backend()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_leaves_an_older_store_unchanged() {
    for version in VERSIONS {
        let (database, uri) = golden_store(version, "golden_mended").await;
        let before = dump(&database).await;
        let audit = IntegritySession::open(&uri).await.unwrap();
        untouched(&audit).await;
        audit.close().await;
        assert!(dump(&database).await == before, "repair changed it");
    }
}

/// The document without the epoch, which counts the upgrades of the store.
fn without_epoch(mut document: Document) -> Document {
    document.remove("e");
    if let Ok(options) = document.get_document_mut("options")
        && let Ok(validator) = options.get_document_mut("validator")
        && let Ok(schema) = validator.get_document_mut("$jsonSchema")
        && let Ok(properties) = schema.get_document_mut("properties")
    {
        properties.remove("e");
    }
    document
}

/// Users and tenants get their epoch on the next write.
#[tokio::test(flavor = "multi_thread")]
async fn every_store_is_upgraded_to_the_newest_version() {
    let newest = text_of(NEWEST);
    let (_, uri) = golden_store(NEWEST, "golden_newest").await;
    let notices = entries(&Mongo::open(&uri, Options::default()).await.unwrap()).await;
    let frame = |text: &str| -> Vec<_> {
        let lines = outside_inboxes(text).into_iter().filter(is_frame);
        lines.map(without_epoch).collect()
    };
    let upgraded = async |version| {
        let (database, uri) = golden_store(version, "golden_upgraded").await;
        let before = records(&Mongo::open(&uri, Options::default()).await.unwrap()).await;
        for _ in ["first", "again"] {
            upgrade_to(&uri, Rules::FIRST, &|line| println!("{line}")).await.unwrap();
            assert_eq!(frame(&dump(&database).await), frame(&newest));
        }
        let audit = IntegritySession::open(&uri).await.unwrap();
        untouched(&audit).await;
        audit.close().await;
        let store = Mongo::open(&uri, Options::default()).await.unwrap();
        assert_eq!(records(&store).await, before);
        searchable(&store).await;
        if version >= BUCKETED {
            assert_eq!(entries(&store).await, notices);
        }
    };
    join_all(VERSIONS.map(upgraded)).await;
}
