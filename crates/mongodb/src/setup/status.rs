//! The output of `store status` for a database of MongoDB.

use std::collections::{BTreeMap, BTreeSet};

use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;
use mongodb::{Collection, Database};

use crate::client::connect::{connect, disconnect};
use crate::client::documents::collect;
use crate::client::error::OpenError;
use crate::client::supported::Supported;
use crate::database::collections::LONG_READ;
use crate::schema::bson::number;
use crate::schema::fields::{AHEAD, META, SCHEMA, SERVERS};
use crate::schema::versions::Versions;
use crate::setup::cluster::{Cluster, STEP_TIMEOUT};
use crate::setup::idle_store::idle_advice;
use crate::setup::inspect::{CollectionState, inspect, obstacle};
use crate::setup::validators::{COLLECTIONS, shard_key};

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Status {
    /// The database.
    pub database: String,
    /// `sharded cluster`, or `replica set` and its name.
    pub topology: String,
    /// The versions of the servers that clients reach.
    pub server_versions: Vec<String>,
    /// The version of the schema. None if the database is not a store, or a shard does not answer.
    pub schema_version: Option<i64>,
    /// The version of the rules of normalisation. None if that of the schema is.
    pub rules_version: Option<u32>,
    /// The shards that do not answer. If there are any, nothing else is inspected but the chunks.
    pub silent_shards: Vec<String>,
    /// The existing collections of the store.
    pub collections: Vec<CollectionStatus>,
    /// The missing parts.
    pub missing: Vec<String>,
    /// The reason why it cannot become a store that this program serves, if it cannot.
    pub obstacle: Option<String>,
    /// The seconds by which servers' clocks are ahead of the database's, for those that differ.
    pub clocks_ahead: Vec<i64>,
    /// Advice.
    pub advice: Vec<Advice>,
}

/// An improvement of a store that can be served as it is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Advice {
    /// The advice.
    pub text: String,
    /// The command for `mongosh` by which an administrator follows it; none if nothing can be done
    /// now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Status {
    /// Whether this program can serve all of it.
    pub const fn is_whole(&self) -> bool {
        self.silent_shards.is_empty() && self.missing.is_empty() && self.obstacle.is_none()
    }
}

/// The state of a collection.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CollectionStatus {
    /// Its name.
    pub name: String,
    /// The shard key; none on a replica set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard_key: Option<String>,
    /// The part of each shard; on a replica set, one that stands for the set.
    pub shards: Vec<ShardStatus>,
}

/// The part of a collection on one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ShardStatus {
    /// Its name; empty on a replica set.
    pub shard: String,
    /// The number of chunks; none on a replica set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
    /// The number of documents, without orphans.
    pub documents: u64,
    /// The bytes of the documents on the disk.
    pub storage_bytes: u64,
    /// The bytes of each index on the disk.
    pub index_bytes: BTreeMap<String, u64>,
}

/// Inspects the database that `uri` names.
///
/// # Errors
/// [`OpenError`]. A database without a complete store is not an error.
pub async fn status(uri: &str) -> Result<Status, OpenError> {
    let database = connect(uri).await?;
    let status = read_status(&database).await;
    disconnect(&database).await;
    status
}

async fn read_status(database: &Database) -> Result<Status, OpenError> {
    let cluster = Cluster::of(database).await?;
    if let Some(cluster) = &cluster {
        let silent_shards = cluster.silent_shards().await?;
        if !silent_shards.is_empty() {
            return without_shards(database, cluster, silent_shards).await;
        }
    }
    let found = inspect(database, cluster.as_ref()).await?;
    let versions = Versions::in_database(database).await?;
    let epoch = versions.unwrap_or(Versions::NEW).epoch;
    let mut missing: Vec<_> =
        found.iter().flat_map(|found| found.missing(cluster.is_some(), epoch)).collect();
    if versions.is_none() {
        missing.push(format!("the document {SCHEMA} of {META}"));
    }

    let foreign = versions.and_then(|versions| versions.obstacle(Supported::PRESENT));
    let obstacle = foreign.or_else(|| obstacle(&found, versions.is_some()));
    let mut collections = Vec::new();
    for found in found.iter().filter(|found| found.is_readable()) {
        let shards = shards(database, cluster.as_ref(), found.name).await?;
        let shard_key = found.key.as_ref().map(Document::to_string);
        collections.push(CollectionStatus { name: found.name.to_owned(), shard_key, shards });
    }

    let mut advice = match &cluster {
        Some(cluster) => {
            advice(database, &found, &collections, cluster.shards().await?.len() as u64)
        }
        None => Vec::new(),
    };
    advice.extend(versions.and_then(Versions::advice).map(|text| Advice { text, command: None }));
    advice.extend(idle_advice(database).await?);
    let (topology, server_versions) = servers(database, cluster.as_ref()).await?;
    let clocks_ahead = clocks_ahead(database).await?;
    let schema_version = versions.map(|versions| versions.schema);
    let rules_version = versions.map(|versions| versions.rules);

    Ok(Status {
        database: database.name().to_owned(),
        topology,
        server_versions,
        schema_version,
        rules_version,
        silent_shards: Vec::new(),
        collections,
        missing,
        obstacle,
        clocks_ahead,
        advice,
    })
}

/// The state of a store of which some shards do not answer.
async fn without_shards(
    database: &Database,
    cluster: &Cluster,
    silent_shards: Vec<String>,
) -> Result<Status, OpenError> {
    let mut collections = Vec::new();
    for name in COLLECTIONS {
        let shards = chunk_counts(cluster, name).await?.into_values().collect();
        let shard_key = cluster.key_of(name).await?.map(|key| key.to_string());
        collections.push(CollectionStatus { name: name.to_owned(), shard_key, shards });
    }
    let (topology, server_versions) = servers(database, Some(cluster)).await?;
    Ok(Status {
        database: database.name().to_owned(),
        topology,
        server_versions,
        schema_version: None,
        rules_version: None,
        silent_shards,
        collections,
        missing: Vec::new(),
        obstacle: None,
        clocks_ahead: Vec::new(),
        advice: Vec::new(),
    })
}

/// The chunks of a resharded collection on each shard: with fewer, MongoDB's samples make them
/// unequal.
const CHUNKS_PER_SHARD: u64 = 30;
/// The documents that MongoDB samples for each of these chunks.
const SAMPLES_PER_CHUNK: u64 = 10;

/// The advice for collections with a shard key of older programs.
fn advice(
    database: &Database,
    found: &[CollectionState],
    collections: &[CollectionStatus],
    shards: u64,
) -> Vec<Advice> {
    let is_other = |found: &&CollectionState| {
        found.key.as_ref().is_some_and(|key| *key != shard_key(found.name))
    };
    let others = found.iter().filter(is_other);
    let status = |found: &CollectionState| {
        collections.iter().find(|collection| collection.name == found.name)
    };
    others.filter_map(|found| Some(resharding(database.name(), status(found)?, shards))).collect()
}

/// The command that reshards a collection to the shard key of this program.
fn resharding(database: &str, collection: &CollectionStatus, shards: u64) -> Advice {
    let name = &collection.name;
    let documents: u64 = collection.shards.iter().map(|shard| shard.documents).sum();
    let key = collection.shard_key.as_deref().unwrap_or_default();
    let text = format!(
        "{name} is sharded on {key}: keys that begin alike lie together, so what is new of one \
         tenant and kind comes to one shard until the balancer has moved it"
    );
    // A multiple of the shards, so that each gets the same number.
    let chunks = (documents / (SAMPLES_PER_CHUNK * shards.max(1))).min(CHUNKS_PER_SHARD) * shards;
    if chunks == 0 {
        let enough = SAMPLES_PER_CHUNK * shards;
        return Advice {
            text: format!("{text}. With {enough} documents it can be moved to hashes"),
            command: None,
        };
    }
    let key = shard_key(name).to_string().replace("\"_id\"", "_id");
    Advice {
        text: format!(
            "{text}. MongoDB moves it to hashes with this command, while servers go \
             on. It takes five minutes or more, needs room for a copy of the collection, and holds \
             back writes to it for two seconds"
        ),
        command: Some(format!(
            "db.adminCommand({{ reshardCollection: \"{database}.{name}\", key: {key}, \
             numInitialChunks: {chunks} }})"
        )),
    }
}

/// The topology, and the versions of the servers.
async fn servers(
    database: &Database,
    cluster: Option<&Cluster>,
) -> Result<(String, Vec<String>), DriverError> {
    let hello = database.run_command(doc! { "hello": 1 }).await?;
    let info = database.run_command(doc! { "buildInfo": 1 }).await?;
    let mut versions: BTreeSet<String> =
        info.get_str("version").into_iter().map(str::to_owned).collect();
    let topology = match cluster {
        Some(cluster) => {
            versions.extend(cluster.router_versions().await?);
            "sharded cluster".to_owned()
        }
        None => format!("replica set {}", hello.get_str("setName").unwrap_or_default()),
    };

    Ok((topology, versions.into_iter().collect()))
}

/// The seconds by which servers' clocks are ahead of the database's, for those that differ.
async fn clocks_ahead(database: &Database) -> Result<Vec<i64>, DriverError> {
    let differing = doc! { AHEAD: { "$nin": [0_i64, Bson::Null] } };
    let servers = database.collection(SERVERS);
    let servers = collect(servers.find(differing).max_time(STEP_TIMEOUT).await?).await?;
    Ok(servers.iter().filter_map(|server| server.get(AHEAD).and_then(number)).collect())
}

async fn shards(
    database: &Database,
    cluster: Option<&Cluster>,
    name: &str,
) -> Result<Vec<ShardStatus>, DriverError> {
    let mut shards = match cluster {
        Some(cluster) => chunk_counts(cluster, name).await?,
        None => BTreeMap::new(),
    };
    for stats in stats(&database.collection(name)).await? {
        let status = read(&stats);
        let chunks = shards.get(&status.shard).and_then(|shard| shard.chunks);
        shards.insert(status.shard.clone(), ShardStatus { chunks, ..status });
    }
    Ok(shards.into_values().collect())
}

/// The shards of a collection, with their numbers of chunks alone.
async fn chunk_counts(
    cluster: &Cluster,
    name: &str,
) -> Result<BTreeMap<String, ShardStatus>, DriverError> {
    let mut shards: BTreeMap<String, ShardStatus> = BTreeMap::new();
    for chunk in cluster.chunks(name).await? {
        let shard = || ShardStatus { shard: chunk.shard.clone(), ..ShardStatus::default() };
        *shards.entry(chunk.shard.clone()).or_insert_with(shard).chunks.get_or_insert(0) += 1;
    }
    Ok(shards)
}

/// The server's statistics of a collection, for each shard that has a part of it.
async fn stats(collection: &Collection<RawDocumentBuf>) -> Result<Vec<Document>, DriverError> {
    let stage = doc! { "$collStats": { "storageStats": {} } };
    collect(collection.aggregate([stage]).max_time(STEP_TIMEOUT).with_type().await?).await
}

fn read(stats: &Document) -> ShardStatus {
    let empty = Document::new();
    let storage = stats.get_document("storageStats").unwrap_or(&empty);
    let bytes = |value: &Bson| number(value).unwrap_or_default().max(0) as u64;
    let size = |name| storage.get(name).map(bytes).unwrap_or_default();
    let indexes = storage.get_document("indexSizes").unwrap_or(&empty);
    let shard = stats.get_str("shard").unwrap_or_default();

    ShardStatus {
        shard: shard.to_owned(),
        chunks: None,
        documents: size("count").saturating_sub(size("numOrphanDocs")),
        storage_bytes: size("storageSize"),
        index_bytes: indexes.iter().map(|(name, size)| (name.clone(), bytes(size))).collect(),
    }
}

/// The approximate number of documents of a collection.
pub async fn count(collection: &Collection<RawDocumentBuf>) -> Result<u64, DriverError> {
    Ok(stats(collection).await?.iter().map(|stats| read(stats).documents).sum())
}

/// The number of documents of a collection that a filter matches.
pub async fn count_matching(
    collection: &Collection<RawDocumentBuf>,
    filter: Document,
) -> Result<u64, DriverError> {
    collection.count_documents(filter).max_time(LONG_READ).await
}
