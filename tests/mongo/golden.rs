//! Golden stores: the documents are what they were, and an old store reads under later rules as what it is.

use std::sync::Arc;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use polynym::store::mongo::{Audit, Mongo, Options};

use super::servers::{self, Databases};
use super::support::golden::{self, compare, fill, moved, records, untouched};

/// A store as the program wrote it that first had this schema.
const STORE: &str = "mongodb-schema-2.txt";

/// The collections of that store.
const COLLECTIONS: [&str; 5] = ["meta", "users", "identities", "requests", "tenants"];

/// A line with a document: its bytes, and what they mean for people.
fn line(document: &Document) -> String {
    let bytes = RawDocumentBuf::try_from(document).unwrap().into_bytes();
    format!("{} {document}\n", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The document with revision 0 in the place of its own: revisions are drawn at random.
fn with_plain_revision(mut document: Document) -> Document {
    if document.contains_key("r") {
        document.insert("r", 0_i64);
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

/// What a command answers with its first batch.
async fn batch(database: &Database, command: Document) -> Vec<Document> {
    let reply = database.run_command(command).await.unwrap();
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().map(|document| document.as_document().unwrap().clone()).collect()
}

/// A database as text: of each collection how it was made, then its documents.
async fn dump(database: &Database) -> String {
    let mut text = String::new();
    for name in COLLECTIONS {
        let listed = batch(database, doc! { "listCollections": 1, "filter": { "name": name } }).await;
        let options = listed[0].get_document("options").unwrap().clone();
        let indexes = batch(database, doc! { "listIndexes": name }).await;
        text += &line(&doc! { "collection": name, "options": options, "indexes": indexes });
        let collection = database.collection::<Document>(name);
        let documents = collection.find(doc! {}).sort(doc! { "_id": 1 }).await.unwrap();
        let documents: Vec<_> = documents.try_collect().await.unwrap();
        text.extend(documents.into_iter().map(with_plain_revision).map(|document| line(&document)));
    }
    text
}

/// Makes a database of what [`dump`] wrote.
async fn restore(database: &Database, text: &str) {
    let mut collection = String::new();
    for document in text.lines().map(document) {
        let Ok(name) = document.get_str("collection") else {
            database.collection(&collection).insert_one(document).await.unwrap();
            continue;
        };
        collection = name.to_owned();
        let mut create = doc! { "create": name };
        create.extend(document.get_document("options").unwrap().clone());
        database.run_command(create).await.unwrap();
        let indexes = document.get_array("indexes").unwrap().clone();
        database.run_command(doc! { "createIndexes": name, "indexes": indexes }).await.unwrap();
    }
}

/// A database with the golden store, and how to reach it.
async fn golden_store(name: &str) -> (Database, String) {
    let set = servers::one_member().await;
    let database = set.client().await.database(name);
    restore(&database, &std::fs::read_to_string(golden::file(STORE)).unwrap()).await;
    (database, set.uri(name, ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stored_forms_are_what_they_were() {
    let place = Databases::of_set(servers::one_member().await, "").place();
    let store = place.mongo().await.unwrap();
    fill(&store).await;
    let filled = servers::one_member().await.client().await.database(place.name().await);
    compare(STORE, &dump(&filled).await);
    let (database, uri) = golden_store("golden").await;
    assert_eq!(dump(&database).await, dump(&filled).await);
    let golden = Mongo::open(&uri, Options::default()).await.unwrap();
    assert_eq!(records(&golden).await, records(&store).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_from_before_is_of_the_first_rules_whatever_the_program() {
    let (_, uri) = golden_store("golden_moved").await;
    moved(Arc::new(Mongo::open(&uri, Options::default()).await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mending_leaves_a_store_from_before_as_it_is() {
    let (database, uri) = golden_store("golden_mended").await;
    let before = dump(&database).await;
    let audit = Audit::open(&uri).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
    assert_eq!(dump(&database).await, before);
}
