//! The chunks of one collection that is sharded on `_id`: ranges of strings and binary values, or
//! ranges of their hashes.

use mongodb::bson::{
    Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, doc,
    oid::ObjectId,
};

use super::fault::Fault;
use super::links::Links;
use polynym_mongodb::hash;

/// A shard key, ordered as MongoDB orders these types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Min,
    /// The hash of a key.
    Number(i64),
    Text(String),
    /// Ordered by length, then by subtype.
    Binary(usize, u8, Vec<u8>),
    Max,
}

impl Key {
    pub fn of(value: RawBsonRef<'_>) -> Result<Self, Fault> {
        match value {
            RawBsonRef::MinKey => Ok(Self::Min),
            RawBsonRef::MaxKey => Ok(Self::Max),
            RawBsonRef::Int64(number) => Ok(Self::Number(number)),
            RawBsonRef::String(text) => Ok(Self::Text(text.to_owned())),
            RawBsonRef::Binary(binary) => {
                Ok(Self::Binary(binary.bytes.len(), binary.subtype.into(), binary.bytes.to_vec()))
            }
            _ => Err(no_key()),
        }
    }

    /// Returns the hash of a value, for collections with a hashed shard key.
    pub fn hashed(value: RawBsonRef<'_>) -> Result<Self, Fault> {
        hash(value).map(Self::Number).ok_or_else(no_key)
    }
}

fn no_key() -> Fault {
    Fault::own(2, "BadValue", "only strings and binary values can be keys here")
}

/// The chunks of a collection, and the versions in statements by which shards reject outdated
/// routing.
pub struct Chunks {
    /// The least key of each chunk, in order, and the index of the shard that owns it.
    owners: Vec<(Key, usize)>,
    /// True if the ranges are ranges of hashes.
    hashed: bool,
    /// The versions of the servers that own chunks, by server index.
    versions: Vec<(usize, Document)>,
    /// The version for a shard that owns no chunk.
    none: Document,
    /// The version of the database, if the collection is not sharded.
    pub database: Option<Document>,
    /// The time of the latest migration of a chunk to its current shard.
    pub moved: Timestamp,
}

impl Chunks {
    /// Builds the table from a row of `config.collections` and its rows of `config.chunks`, in
    /// order.
    pub fn sharded(collection: &Document, rows: &[Document], links: &Links) -> Result<Self, Fault> {
        let version = |latest: Timestamp| {
            let (epoch, created) = (collection.get("lastmodEpoch"), collection.get("timestamp"));
            doc! { "t": created.cloned(), "e": epoch.cloned(), "v": latest }
        };
        let mut owners = Vec::with_capacity(rows.len());
        let mut moved = NEVER;
        let mut latest: Vec<(usize, Timestamp)> = Vec::new();

        for row in rows {
            let shard = links.find(row.get_str("shard").unwrap_or_default())?;
            owners.push((least(row)?, shard));
            moved = moved.max(since(row).unwrap_or(NEVER));
            let changed = row.get_timestamp("lastmod").unwrap_or(NEVER);
            match latest.iter_mut().find(|(known, _)| *known == shard) {
                Some((_, latest)) => *latest = changed.max(*latest),
                None => latest.push((shard, changed)),
            }
        }

        let versions = latest.into_iter().map(|(shard, latest)| (shard, version(latest))).collect();
        let hashed = is_hashed(collection);
        Ok(Self { owners, hashed, versions, none: version(NEVER), database: None, moved })
    }

    /// Builds the table of a collection that is not sharded: the primary shard of its database owns
    /// it.
    pub fn whole(primary: usize, database: Document) -> Self {
        let none = doc! { "t": NEVER, "e": ObjectId::from_bytes([0; 12]), "v": NEVER };
        let owners = vec![(Key::Min, primary)];
        Self {
            owners,
            hashed: false,
            versions: Vec::new(),
            none,
            database: Some(database),
            moved: NEVER,
        }
    }

    /// Returns the version of this collection for a shard.
    pub fn version(&self, shard: usize) -> &Document {
        self.versions
            .iter()
            .find(|(known, _)| *known == shard)
            .map_or(&self.none, |(_, version)| version)
    }

    /// Returns the shards that own chunks, the owner of the least key first.
    pub fn all(&self) -> Vec<usize> {
        distinct(self.owners.iter().map(|(_, shard)| *shard))
    }

    /// Returns the shards that own documents that a filter can match.
    pub fn of_filter(&self, filter: &RawDocument) -> Result<Vec<usize>, Fault> {
        match filter.get("_id")? {
            Some(RawBsonRef::Document(condition)) => match condition.get("$in")? {
                Some(RawBsonRef::Array(keys)) => self.of_keys(keys),
                _ if self.hashed => Ok(self.all()),
                _ => self.of_range(condition),
            },
            Some(key) => Ok(vec![self.of_key(key)?]),
            None => Ok(self.all()),
        }
    }

    /// Returns the shards that own a part of a range of keys. As in mongos, a range has its ends.
    fn of_range(&self, condition: &RawDocument) -> Result<Vec<usize>, Fault> {
        let end = |names: [&str; 2]| -> Result<Option<Key>, Fault> {
            for name in names {
                if let Some(value) = condition.get(name)? {
                    return Key::of(value).map(Some);
                }
            }
            Ok(None)
        };
        let up_to = |end: Key| self.owners.partition_point(|(least, _)| *least <= end);
        let first = end(["$gte", "$gt"])?.map_or(0, |least| up_to(least).saturating_sub(1));
        let after = end(["$lte", "$lt"])?.map_or(self.owners.len(), up_to).max(first + 1);
        Ok(distinct(self.owners[first..after].iter().map(|(_, shard)| *shard)))
    }

    fn of_keys(&self, keys: &RawArray) -> Result<Vec<usize>, Fault> {
        let owners =
            keys.into_iter().map(|key| self.of_key(key?)).collect::<Result<Vec<_>, _>>()?;
        Ok(distinct(owners.into_iter()))
    }

    /// Returns the shard that owns a key.
    pub fn of_key(&self, key: RawBsonRef<'_>) -> Result<usize, Fault> {
        if self.owners.len() == 1 {
            return Ok(self.owners[0].1);
        }
        let shard_key = if self.hashed { Key::hashed(key)? } else { Key::of(key)? };
        let after = self.owners.partition_point(|(least, _)| *least <= shard_key);
        Ok(self.owners[after.saturating_sub(1)].1)
    }
}

/// Returns true if a row of `config.collections` has a hashed shard key.
pub fn is_hashed(collection: &Document) -> bool {
    collection
        .get_document("key")
        .and_then(|key| key.get_str("_id"))
        .is_ok_and(|kind| kind == "hashed")
}

const NEVER: Timestamp = Timestamp { time: 0, increment: 0 };

/// Returns the time at which a chunk came to its shard.
fn since(row: &Document) -> Option<Timestamp> {
    row.get_array("history").ok()?.first()?.as_document()?.get_timestamp("validAfter").ok()
}

fn least(row: &Document) -> Result<Key, Fault> {
    let min = row.get_document("min").ok();
    // Chunks by another key are whole collections here: one that is refused.
    let least = min.and_then(|min| min.get("_id")).unwrap_or(&Bson::MinKey);
    let raw = RawDocumentBuf::try_from(&doc! { "_id": least })?;
    Key::of(raw.get("_id")?.unwrap_or(RawBsonRef::Null))
}

/// Removes duplicates, in the order of first occurrence.
fn distinct(shards: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut found = Vec::new();
    shards.for_each(|shard| {
        if !found.contains(&shard) {
            found.push(shard)
        }
    });
    found
}
