//! Collections sharded on hashed keys: the front end routes the statements of transactions to the
//! shards that own the documents.

use futures_util::TryStreamExt;
use mongodb::Client;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};

use super::cluster;
use super::cluster::{begin, is_duplicate, on_shards, thing};
use crate::servers::{Hashed, Sharded, hash_of};

/// Creates an empty collection in a database of its own; each shard owns a third of the hashes.
pub async fn shard(cluster: &Sharded, database: &str) -> mongodb::Collection<Document> {
    let client = Client::with_uri_str(cluster.uri(database)).await.unwrap();
    let space = format!("{database}.things");
    cluster.admin(doc! { "shardCollection": &space, "key": { "_id": "hashed" } }).await.unwrap();
    let counts = Hashed::read(cluster, &space).await.by_shard(cluster);
    assert!(counts.iter().all(|count| *count > 0 && *count == counts[0]), "{counts:?}");
    client.database(database).collection("things")
}

/// Returns `count` keys of one shard.
pub async fn keys_of(cluster: &Sharded, database: &str, shard: usize, count: usize) -> Vec<String> {
    let (chunks, name) =
        (Hashed::read(cluster, &format!("{database}.things")).await, &cluster.shards[shard].name);
    (0..)
        .map(|n| format!("key{n}"))
        .filter(|key| chunks.owner(key.as_str()) == name)
        .take(count)
        .collect()
}

#[tokio::test]
async fn hashes_equal_those_of_mongodb() {
    let cluster = cluster().await;
    let binary = |subtype, bytes: Vec<u8>| Bson::Binary(Binary { subtype, bytes });
    let texts =
        ["", "a", "default,email,joe@example.com", "default,handle,ѕсоре", "e\u{301}\u{1f600}"];
    let lengths = [0, 1, 16, 55, 56, 63, 64, 65, 300];
    let values = texts.into_iter().map(Bson::from).chain(lengths.into_iter().flat_map(|length| {
        let bytes: Vec<u8> = (0..length).map(|n| (n * 37 + length) as u8).collect();
        let text = "x".repeat(length);
        [
            text.into(),
            binary(BinarySubtype::Uuid, bytes.clone()),
            binary(BinarySubtype::Generic, bytes),
        ]
    }));

    for value in values {
        let answer = cluster.shards[0].members[0]
            .admin(doc! { "_hashBSONElement": &value, "seed": 0 })
            .await
            .unwrap();
        assert_eq!(
            answer.get_i64("out").unwrap_or_else(|_| panic!("{answer}")),
            hash_of(value.clone()),
            "{value}"
        );
    }
}

#[tokio::test]
async fn statements_of_transactions_are_routed_by_hash() {
    let cluster = cluster().await;
    let things = shard(cluster, "hashed").await;
    let mut keys = Vec::new();
    for shard in 0..3 {
        keys.extend(keys_of(cluster, "hashed", shard, 10).await);
    }

    let all = doc! { "_id": { "$in": &keys } };
    let mut session = begin(&things).await;
    things.insert_many(keys.iter().map(|key| thing(key, 0))).session(&mut session).await.unwrap();
    let mut cursor = things.find(all.clone()).batch_size(100).session(&mut session).await.unwrap();
    let found: Vec<Document> = cursor.stream(&mut session).try_collect().await.unwrap();
    assert_eq!(found.len(), 30);

    for key in &keys {
        let raise = doc! { "$inc": { "n": 1 } };
        let raised =
            things.update_one(doc! { "_id": key }, raise).session(&mut session).await.unwrap();
        assert_eq!(raised.matched_count, 1, "{key}");
    }

    session.commit_transaction().await.unwrap();
    assert_eq!(on_shards(cluster, "hashed").await, [10, 10, 10]);

    // MongoDB's own router finds each document on the shard chosen by the front end.
    for key in &keys {
        assert_eq!(things.find_one(doc! { "_id": key }).await.unwrap(), Some(thing(key, 1)));
    }

    let mut session = begin(&things).await;
    let again = [thing("free", 0), thing(&keys[11], 0)];
    let taken = things.insert_many(again).session(&mut session).await.unwrap_err();
    assert!(is_duplicate(&taken, 1), "{taken:?}");

    session.abort_transaction().await.unwrap();
    let mut session = begin(&things).await;
    assert_eq!(things.delete_many(all).session(&mut session).await.unwrap().deleted_count, 30);
    session.commit_transaction().await.unwrap();
    assert_eq!(on_shards(cluster, "hashed").await, [0, 0, 0]);
}
