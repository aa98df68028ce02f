//! The sharded cluster: its answers to drivers, and the work of its shards.

use futures_util::TryStreamExt;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use mongodb::error::{ErrorKind, TRANSIENT_TRANSACTION_ERROR, WriteFailure};
use mongodb::options::{ReadConcern, WriteConcern};
use mongodb::{Client, ClientSession, Collection, IndexModel};

use super::cluster;
use crate::servers::Sharded;

/// Keys of all three shards in turn.
pub const KEYS: [&str; 9] = ["a1", "h1", "s1", "a2", "h2", "s2", "a3", "h3", "s3"];

/// Creates an empty collection in a database of its own; each shard owns a third.
pub async fn spread(cluster: &Sharded, database: &str) -> Collection<Document> {
    let client = Client::with_uri_str(cluster.uri(database)).await.unwrap();
    let space = format!("{database}.things");
    cluster.admin(doc! { "shardCollection": &space, "key": { "_id": 1 } }).await.unwrap();
    cluster.spread(&space, &["g".into(), "p".into()]).await;
    client.database(database).collection("things")
}

pub fn thing(key: &str, n: i32) -> Document {
    doc! { "_id": key, "n": n }
}

/// Starts a transaction with snapshot reads and a majority commit.
pub async fn begin(things: &Collection<Document>) -> ClientSession {
    let mut session = things.client().start_session().await.unwrap();
    let begin = session.start_transaction().read_concern(ReadConcern::snapshot());
    begin.write_concern(WriteConcern::majority()).await.unwrap();
    session
}

/// Returns the number of documents on each shard.
pub async fn on_shards(cluster: &Sharded, database: &str) -> Vec<u64> {
    let mut counts = Vec::new();
    for shard in &cluster.shards {
        let things = shard.members[0].database(database).await.collection::<Document>("things");
        counts.push(things.count_documents(doc! {}).await.unwrap());
    }
    counts
}

#[tokio::test]
async fn operations_are_routed_by_key() {
    let cluster = cluster().await;
    let things = spread(cluster, "routing").await;
    things.insert_many(KEYS.map(|key| thing(key, 0))).await.unwrap();
    assert_eq!(on_shards(cluster, "routing").await, [3, 3, 3]);

    let some = doc! { "_id": { "$in": ["a1", "h1", "s1", "none"] } };
    let mut found: Vec<_> =
        things.find(some.clone()).batch_size(1).await.unwrap().try_collect().await.unwrap();
    found.sort_by_key(|thing: &Document| thing.get_str("_id").unwrap().to_owned());
    assert_eq!(found, [thing("a1", 0), thing("h1", 0), thing("s1", 0)]);

    let updated = things.update_many(some, doc! { "$inc": { "n": 1 } }).await.unwrap();
    assert_eq!((updated.matched_count, updated.modified_count), (3, 3));
    assert_eq!(things.find_one(doc! { "_id": "h1" }).await.unwrap(), Some(thing("h1", 1)));
    assert_eq!(
        things.find_one(doc! { "n": 1 }).sort(doc! { "_id": -1 }).await.unwrap(),
        Some(thing("s1", 1))
    );

    let group = doc! { "$group": { "_id": null, "n": { "$sum": "$n" }, "count": { "$sum": 1 } } };
    let sum: Vec<Document> = things.aggregate([group]).await.unwrap().try_collect().await.unwrap();
    assert_eq!(sum, [doc! { "_id": null, "n": 3, "count": 9 }]);

    let again = things.insert_many(["a4", "h1", "s4"].map(|key| thing(key, 0))).await.unwrap_err();
    let ErrorKind::InsertMany(error) = *again.kind else { panic!("{again}") };
    let errors: Vec<_> =
        error.write_errors.unwrap().into_iter().map(|error| (error.index, error.code)).collect();
    assert_eq!(errors, [(1, 11_000)]);
    assert_eq!(things.delete_many(doc! {}).await.unwrap().deleted_count, 10);
}

#[tokio::test]
async fn transactions_are_atomic_across_shards() {
    let cluster = cluster().await;
    let things = spread(cluster, "transactions").await;
    let mut session = begin(&things).await;
    things.insert_many(KEYS.map(|key| thing(key, 0))).session(&mut session).await.unwrap();
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 0);

    session.commit_transaction().await.unwrap();
    session.commit_transaction().await.unwrap();
    assert_eq!(on_shards(cluster, "transactions").await, [3, 3, 3]);

    let mut session = begin(&things).await;
    let of_two = doc! { "_id": { "$in": ["a1", "h1"] } };
    assert_eq!(
        things.delete_many(of_two.clone()).session(&mut session).await.unwrap().deleted_count,
        2
    );

    things
        .replace_one(doc! { "_id": "s5" }, thing("s5", 5))
        .upsert(true)
        .session(&mut session)
        .await
        .unwrap();
    let remaining: Vec<Document> = things
        .find(of_two.clone())
        .session(&mut session)
        .await
        .unwrap()
        .stream(&mut session)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(remaining, []);

    session.abort_transaction().await.unwrap();
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 9);

    let mut session = begin(&things).await;
    things.delete_one(doc! { "_id": "a1" }).session(&mut session).await.unwrap();
    let taken = things
        .insert_many(["a4", "a5", "h1"].map(|key| thing(key, 0)))
        .session(&mut session)
        .await
        .unwrap_err();
    assert!(is_duplicate(&taken, 2), "{taken:?}");
    assert!(!taken.contains_label(TRANSIENT_TRANSACTION_ERROR));

    session.abort_transaction().await.unwrap();
    assert_eq!(on_shards(cluster, "transactions").await, [3, 3, 3]);
}

/// Returns true if the item with this number failed with a duplicate key.
pub fn is_duplicate(error: &mongodb::error::Error, item: usize) -> bool {
    match &*error.kind {
        ErrorKind::InsertMany(error) => error
            .write_errors
            .iter()
            .flatten()
            .any(|error| error.code == 11_000 && error.index == item),
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == 11_000,
        ErrorKind::Command(error) => error.code == 11_000,
        _ => false,
    }
}

#[tokio::test]
async fn a_write_conflict_aborts_one_transaction() {
    let things = spread(cluster().await, "conflicts").await;
    things.insert_one(thing("h1", 0)).await.unwrap();
    let (mut one, mut other) = (begin(&things).await, begin(&things).await);
    let raise = doc! { "$inc": { "n": 1 } };
    things.update_one(doc! { "_id": "h1" }, raise.clone()).session(&mut one).await.unwrap();
    let conflict =
        things.update_one(doc! { "_id": "h1" }, raise).session(&mut other).await.unwrap_err();
    assert!(conflict.contains_label(TRANSIENT_TRANSACTION_ERROR), "{conflict:?}");

    one.commit_transaction().await.unwrap();
    other.abort_transaction().await.unwrap();
    assert_eq!(things.find_one(doc! { "_id": "h1" }).await.unwrap(), Some(thing("h1", 1)));
}

#[tokio::test]
async fn collections_are_administered_on_all_shards() {
    let cluster = cluster().await;
    let things = spread(cluster, "looked_after").await;
    let database = things.client().database("looked_after");
    things.create_index(IndexModel::builder().keys(doc! { "n": 1 }).build()).await.unwrap();
    assert_eq!(things.list_index_names().await.unwrap(), ["_id_", "n_1"]);

    for shard in &cluster.shards {
        let there =
            shard.members[0].database("looked_after").await.collection::<Document>("things");
        assert_eq!(there.list_index_names().await.unwrap(), ["_id_", "n_1"], "{}", shard.name);
    }

    database.create_collection("whole").await.unwrap();
    let mut names = database.list_collection_names().await.unwrap();
    names.sort();
    assert_eq!(names, ["things", "whole"]);

    let bytes =
        |first: u8| Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![first; 16] });
    let whole = database.collection::<Document>("whole");
    let mut session = begin(&things).await;
    whole.insert_one(doc! { "_id": bytes(1) }).session(&mut session).await.unwrap();
    things.insert_many(KEYS.map(|key| thing(key, 0))).session(&mut session).await.unwrap();
    session.commit_transaction().await.unwrap();
    let statistics = database.run_command(doc! { "collStats": "things" }).await.unwrap();
    assert_eq!(statistics.get_i64("count").unwrap(), 9);
    assert_eq!(statistics.get_document("shards").unwrap().len(), 3);
    assert_eq!(
        cluster.admin(doc! { "listShards": 1 }).await.unwrap().get_array("shards").unwrap().len(),
        3
    );

    let names = cluster.client().await.list_database_names().await.unwrap();
    assert!(names.contains(&"looked_after".to_owned()), "{names:?}");
    things.drop().await.unwrap();
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 0);

    database.drop().await.unwrap();
    assert_eq!(whole.count_documents(doc! {}).await.unwrap(), 0);
    let unknown = cluster.admin(doc! { "shutdown": 1 }).await.unwrap_err();
    assert!(matches!(&*unknown.kind, ErrorKind::Command(error) if error.code == 59), "{unknown:?}");
}
