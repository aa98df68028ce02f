//! Golden stores: documents do not change, and an old store keeps its meaning under later rules.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use polynym_identifier::Rules;
use polynym_mongodb::{InitOptions, IntegritySession, Mongo, Options, Supported, init, upgrade_to};

use super::servers;
use super::support::golden::{
    self, compare, entries, fill, fill_inboxes, later_rules, moved, of_the_present_rules, records,
    searchable, set_inbox_policies, untouched,
};

/// The golden store.
const STORE: &str = "mongodb-schema-16.txt";

/// The collections of that store.
const COLLECTIONS: [&str; 9] =
    ["meta", "users", "identities", "requests", "tenants", "names", "journal", "ended", "notices"];

/// A line with a document: its bytes, and a readable form.
fn line(document: &Document) -> String {
    let bytes = RawDocumentBuf::try_from(document).unwrap().into_bytes();
    format!("{} {document}\n", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The document with revision 0, because revisions are random; without the key of tokens, which is
/// random, too; and with sorted fields, because MongoDB chooses the order of added ones.
fn plain(mut document: Document) -> Document {
    if matches!(document.get("r"), Some(Bson::Int64(_))) {
        document.insert("r", 0_i64);
    }
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
/// left out: their ids are random.
pub async fn dump(database: &Database) -> String {
    let mut text = String::new();
    let users: HashSet<_> = users_of(database).await;
    for name in COLLECTIONS {
        let listed =
            batch(database, doc! { "listCollections": 1, "filter": { "name": name } }).await;
        let mut options = listed[0].get_document("options").unwrap().clone();
        // A changed validator states the defaults.
        options.remove("validationAction");
        let indexes = batch(database, doc! { "listIndexes": name }).await;
        text += &line(&doc! { "collection": name, "options": options, "indexes": indexes });
        let collection = database.collection::<Document>(name);
        let documents = collection.find(doc! {}).sort(doc! { "_id": 1 }).await.unwrap();
        let mut documents: Vec<_> = documents.try_collect().await.unwrap();
        if name == "journal" {
            documents.retain(|document| users.contains(user_of(document)));
        }
        if name == "requests" {
            // Since when their tenant exists: a request of a new tenant has it.
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

/// A database with the golden store, and its URI.
pub async fn golden_store(name: &str) -> (Database, String) {
    let set = servers::one_member().await;
    let database = set.client().await.database(name);
    restore_golden(&database).await;
    (database, set.uri(name, ""))
}

/// Creates the golden store in an empty database.
pub async fn restore_golden(database: &Database) {
    restore(database, text().lines()).await;
}

fn text() -> String {
    std::fs::read_to_string(golden::file(STORE)).unwrap()
}

/// The database `name` of a set, with an empty store, and its URI.
pub async fn new_store(set: &servers::ReplicaSet, name: &str) -> (Database, String) {
    let (database, uri) = (set.client().await.database(name), set.uri(name, ""));
    init(&uri, &InitOptions::default(), &|line| println!("{line}")).await.unwrap();
    (database, uri)
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_forms_do_not_change() {
    let (filled, uri) = new_store(servers::one_member().await, "golden_new").await;
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    fill(&store).await;
    set_inbox_policies(&store).await;
    fill_inboxes(&store).await;
    compare(STORE, &dump(&filled).await);

    let (database, uri) = golden_store("golden").await;
    let golden = Mongo::open(&uri, Options::default()).await.unwrap();
    assert_eq!(records(&golden).await, records(&store).await);
    assert_eq!(entries(&golden).await, entries(&store).await);
    searchable(&golden).await;
    assert!(dump(&database).await == text(), "opening changed it");
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_of_a_store_move_to_later_rules() {
    let (_, uri) = golden_store("golden_moved").await;
    of_the_present_rules(&Mongo::open(&uri, Options::default()).await.unwrap()).await;
    let schema = Supported::PRESENT.schema;
    upgrade_to(&uri, schema, later_rules(), &|line| println!("{line}")).await.unwrap();
    let supported = Supported { rules: later_rules().version(), ..Supported::PRESENT };
    let audit = IntegritySession::open_supporting(&uri, supported).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
    let store = Mongo::open_supporting(&uri, Options::default(), supported).await.unwrap();
    moved(Arc::new(store).backend()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_leaves_a_store_unchanged() {
    let (database, uri) = golden_store("golden_mended").await;
    let audit = IntegritySession::open(&uri).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
    assert!(dump(&database).await == text(), "repair changed it");
}

/// A next schema raises the version and the epoch, and leaves all else.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_moves_to_the_next_schema() {
    let (database, uri) = golden_store("golden_upgraded").await;
    let supported = Supported { schema: Supported::PRESENT.schema + 1, ..Supported::PRESENT };
    let before = records(&Mongo::open(&uri, Options::default()).await.unwrap()).await;
    for _ in ["first", "again"] {
        let report = |line: &str| println!("{line}");
        upgrade_to(&uri, supported.schema, Rules::PRESENT, &report).await.unwrap();
        let meta = database.collection::<Document>("meta");
        let versions = meta.find_one(doc! { "_id": "schema" }).await.unwrap().unwrap();
        assert_eq!(versions.get_i64("v").unwrap(), supported.schema);
        assert_eq!(versions.get_i32("e").unwrap(), 2);
    }
    let audit = IntegritySession::open_supporting(&uri, supported).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
    let store = Mongo::open_supporting(&uri, Options::default(), supported).await.unwrap();
    assert_eq!(records(&store).await, before);
}
