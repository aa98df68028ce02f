//! Which shard owns which keys of one collection that is sharded on `_id`: by ranges of strings and
//! binary values, or by ranges of their hashes.

use mongodb::bson::{
    Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, doc,
    oid::ObjectId,
};

use super::fault::Fault;
use super::hash::hash;
use super::links::Links;

/// A key, in MongoDB's order of these types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Min,
    /// A hash of a key.
    Number(i64),
    Text(String),
    /// Shorter ones come first, then those of a lower subtype.
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

    /// The hash of a value, by which the chunks of some collections are ordered.
    pub fn hashed(value: RawBsonRef<'_>) -> Result<Self, Fault> {
        hash(value).map(Self::Number).ok_or_else(no_key)
    }
}

fn no_key() -> Fault {
    Fault::own(2, "BadValue", "only strings and binary values can be keys here")
}

/// The chunks of a collection, and the versions that statements carry so that shards refuse what is
/// old.
pub struct Chunks {
    /// The least key of each chunk, in order, and the place of the shard that owns it.
    owners: Vec<(Key, usize)>,
    /// Whether the ranges are of hashes.
    hashed: bool,
    /// Of each server that owns chunks, by its place.
    versions: Vec<(usize, Document)>,
    /// The version of the collection for a shard that owns none of it.
    none: Document,
    /// The version of the database, where the collection is not sharded.
    pub database: Option<Document>,
    /// When a chunk came to the shard that owns it now, the last time that one did.
    pub moved: Timestamp,
}

impl Chunks {
    /// The collection of a row of `config.collections`, with its rows of `config.chunks`, in order.
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

    /// A collection that is not sharded: all of it is on the primary shard of its database.
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

    /// The version of this collection for a shard.
    pub fn version(&self, shard: usize) -> &Document {
        self.versions
            .iter()
            .find(|(known, _)| *known == shard)
            .map_or(&self.none, |(_, version)| version)
    }

    /// The shards that own any of it, the owner of the least key first.
    pub fn all(&self) -> Vec<usize> {
        distinct(self.owners.iter().map(|(_, shard)| *shard))
    }

    /// The shards that own what a filter can match.
    pub fn of_filter(&self, filter: &RawDocument) -> Result<Vec<usize>, Fault> {
        match filter.get("_id")? {
            Some(RawBsonRef::Document(condition)) => match condition.get("$in")? {
                Some(RawBsonRef::Array(keys)) => self.of_keys(keys),
                _ => Ok(self.all()),
            },
            Some(key) => Ok(vec![self.of_key(key)?]),
            None => Ok(self.all()),
        }
    }

    fn of_keys(&self, keys: &RawArray) -> Result<Vec<usize>, Fault> {
        let owners =
            keys.into_iter().map(|key| self.of_key(key?)).collect::<Result<Vec<_>, _>>()?;
        Ok(distinct(owners.into_iter()))
    }

    /// The shard that owns a key.
    pub fn of_key(&self, key: RawBsonRef<'_>) -> Result<usize, Fault> {
        if self.owners.len() == 1 {
            return Ok(self.owners[0].1);
        }
        let key = if self.hashed { Key::hashed(key)? } else { Key::of(key)? };
        let after = self.owners.partition_point(|(least, _)| *least <= key);
        Ok(self.owners[after.saturating_sub(1)].1)
    }
}

/// Whether the collection of a row of `config.collections` is sharded on hashes of `_id`.
pub fn is_hashed(collection: &Document) -> bool {
    collection
        .get_document("key")
        .and_then(|key| key.get_str("_id"))
        .is_ok_and(|kind| kind == "hashed")
}

const NEVER: Timestamp = Timestamp { time: 0, increment: 0 };

/// Since when a chunk is where it is.
fn since(row: &Document) -> Option<Timestamp> {
    row.get_array("history").ok()?.first()?.as_document()?.get_timestamp("validAfter").ok()
}

fn least(row: &Document) -> Result<Key, Fault> {
    let least = row.get_document("min").ok().and_then(|min| min.get("_id")).unwrap_or(&Bson::Null);
    let raw = RawDocumentBuf::try_from(&doc! { "_id": least })?;
    Key::of(raw.get("_id")?.unwrap_or(RawBsonRef::Null))
}

/// Each of them once, in the order of their first occurrence.
fn distinct(shards: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut found = Vec::new();
    shards.for_each(|shard| {
        if !found.contains(&shard) {
            found.push(shard)
        }
    });
    found
}
