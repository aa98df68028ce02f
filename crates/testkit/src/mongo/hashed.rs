//! The distribution of a collection that is sharded on hashes of `_id`.

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use super::sharded::Sharded;
use polynym_mongodb::hash;

/// The chunks of a collection that is sharded on `{ _id: "hashed" }`.
pub struct Hashed {
    /// The least hash of each chunk, in order, and the shard that owns the chunk.
    chunks: Vec<(i64, String)>,
}

impl Hashed {
    /// Reads the chunks of a collection from the config server.
    pub async fn read(cluster: &Sharded, space: &str) -> Self {
        let config = cluster.client().await.database("config");
        let found = config
            .collection::<Document>("collections")
            .find_one(doc! { "_id": space })
            .await
            .unwrap();
        let entry = found.unwrap_or_else(|| panic!("{space} is not sharded"));
        assert_eq!(entry.get_document("key").unwrap(), &doc! { "_id": "hashed" });

        let own = doc! { "uuid": entry.get("uuid").cloned() };
        let cursor = config
            .collection::<Document>("chunks")
            .find(own)
            .sort(doc! { "min": 1 })
            .await
            .unwrap();
        let chunks: Vec<Document> = cursor.try_collect().await.unwrap();

        let chunk = |chunk: &Document| {
            let least = chunk.get_document("min").unwrap().get_i64("_id").unwrap_or(i64::MIN);
            (least, chunk.get_str("shard").unwrap().to_owned())
        };
        Self { chunks: chunks.iter().map(chunk).collect() }
    }

    /// Returns the name of the shard that owns a key.
    pub fn owner(&self, key: impl Into<Bson>) -> &str {
        let hash = hash_of(key);
        let after = self.chunks.partition_point(|(least, _)| *least <= hash);
        &self.chunks[after - 1].1
    }

    /// Returns the number of chunks of each shard, in the order of the shards.
    pub fn by_shard(&self, cluster: &Sharded) -> Vec<usize> {
        let count = |name: &str| self.chunks.iter().filter(|(_, shard)| shard == name).count();
        cluster.shards.iter().map(|shard| count(&shard.name)).collect()
    }
}

/// Returns the hash of a key, which must be a string or a binary value.
pub fn hash_of(key: impl Into<Bson>) -> i64 {
    let raw = RawDocumentBuf::try_from(&doc! { "_id": key.into() }).unwrap();
    hash(raw.get("_id").unwrap().unwrap()).expect("a string or a binary value")
}
