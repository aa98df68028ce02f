//! `store init`: makes in a database of MongoDB what a store needs, and reports each step. Every
//! step first checks whether it is done, so that it can be repeated after an interruption or beside
//! another run, and changes nothing that is in use. The last step is the document that marks the
//! database as a store.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::options::{Acknowledgment, WriteConcern};

use crate::store::mongo::client::connect::{connect, disconnect};
use crate::store::mongo::client::error::{Fault, OpenError};
use crate::store::mongo::client::supported::Supported;
use crate::store::mongo::schema::fields::{
    ENDED, IDENTITIES, INBOX, JOURNAL, META, NAMES, SERVERS, TENANTS,
};
use crate::store::mongo::schema::versions::Versions;
use crate::store::mongo::setup::cluster::{Cluster, patiently, patiently_for};
use crate::store::mongo::setup::inspect::{CollectionState, inspect, obstacle};
use crate::store::mongo::setup::presplit;
use crate::store::mongo::setup::presplit::{Range, Step};
use crate::store::mongo::setup::validators::{by_order, level, shard_key, validator};

/// The time for which a change of a validator waits for transactions in one attempt, in
/// milliseconds. All other operations wait for it meanwhile.
const TURN: i64 = 500;
/// The total time for attempts: longer than an abandoned transaction lives.
const LIFETIME: Duration = Duration::from_secs(150);

/// NamespaceExists.
const EXISTS: i32 = 48;

/// The options of [`init`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitOptions {
    /// Whether users and requests are cut and placed over all shards at once, or left to the
    /// balancer. MongoDB itself spreads identities.
    pub spread: bool,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self { spread: true }
    }
}

/// Makes a store in the database that `uri` names, and reports each step to `progress` in a
/// sentence. What exists already stays as it is, except for empty chunks, which may move to another
/// shard.
///
/// # Errors
/// [`OpenError`], where nothing was changed: where the server cannot keep a store, or the database
/// holds a store of another version or anything else under the names that a store uses. Where a
/// step fails, what was made stays, and another run goes on from there.
pub async fn init(
    uri: &str,
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let database = connect(uri).await?;
    let made = make_all(&database, options, progress).await;
    disconnect(&database).await;
    made
}

async fn make_all(
    database: &Database,
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let cluster = Cluster::of(database).await?;
    let found = inspect(database, cluster.as_ref()).await?;
    // Read after what it vouches for: a run that finishes meanwhile has made what was found.
    let versions = versions(database).await?;
    if let Some(what) = obstacle(&found, versions.is_some()) {
        return Err(OpenError::Foreign { database: database.name().to_owned(), what });
    }

    let epoch = versions.unwrap_or(Versions::NEW).epoch;
    make_found(database, cluster.as_ref(), &found, epoch, options, progress).await?;
    match versions {
        None => finish(database, progress).await,
        Some(versions) => {
            progress(&format!(
                "database {} was a store of schema version {} before",
                database.name(),
                versions.schema
            ));
            if versions.schema < Versions::NEW.schema {
                progress("`polynym store upgrade` takes it to the newest version");
            }
            Ok(())
        }
    }
}

/// Makes what a store of these versions lacks.
///
/// # Errors
/// [`OpenError`]. Where a step fails, another run goes on from there.
pub async fn complete(
    database: &Database,
    versions: Versions,
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let cluster = Cluster::of(database).await?;
    let found = inspect(database, cluster.as_ref()).await?;
    if let Some(what) = obstacle(&found, true) {
        return Err(OpenError::Foreign { database: database.name().to_owned(), what });
    }
    make_found(database, cluster.as_ref(), &found, versions.epoch, options, progress).await
}

/// Makes what is missing of the collections that were found.
async fn make_found(
    database: &Database,
    cluster: Option<&Cluster>,
    found: &[CollectionState],
    epoch: i32,
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    for found in found {
        make(database, found, epoch, progress).await?;
    }
    match cluster {
        Some(cluster) => shard(cluster, found, options, progress).await,
        None => Ok(()),
    }
}

/// The versions of the store that was made here; none where there is none.
async fn versions(database: &Database) -> Result<Option<Versions>, OpenError> {
    match Versions::supported_in(database, Supported::PRESENT).await {
        Err(OpenError::NotInitialised { database: name }) => {
            match database.collection::<Document>(META).find_one(doc! {}).await? {
                None => Ok(None),
                Some(_) => Err(OpenError::Foreign {
                    database: name,
                    what: format!("{META} with something else in it"),
                }),
            }
        }
        found => found.map(Some),
    }
}

/// Makes a collection, its validator and its indexes.
async fn make(
    database: &Database,
    found: &CollectionState,
    epoch: i32,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), DriverError> {
    let name = found.name;
    let made = !found.exists() && create(database, name, epoch).await?;
    let is_checked = found.is_checked(epoch);
    if !made && !is_checked {
        let mut command = doc! { "collMod": name, "maxTimeMS": TURN };
        command.extend(checking(name, epoch));
        patiently_for(LIFETIME, async || database.run_command(command.clone()).await).await?;
    }

    progress(&match (made, is_checked) {
        (true, _) => format!("{name}: made"),
        (false, true) => format!("{name}: was there"),
        (false, false) => format!("{name}: was there; its validator was set"),
    });
    for index in found.missing_indexes(epoch) {
        make_index(database, found, index).await?;
        progress(&format!("{name}: its index was made"));
    }

    Ok(())
}

/// Makes an index, or changes when it lets documents go.
async fn make_index(
    database: &Database,
    found: &CollectionState,
    index: Document,
) -> Result<(), DriverError> {
    let name = found.name;
    let command = match found.index_on(&index) {
        None => doc! { "createIndexes": name, "indexes": [index] },
        Some(_) => {
            let seconds = index.get("expireAfterSeconds").cloned();
            let keys = index.get("key").cloned();
            let index = doc! { "keyPattern": keys, "expireAfterSeconds": seconds };
            doc! { "collMod": name, "index": index }
        }
    };
    patiently(async || database.run_command(command.clone()).await).await.map(drop)
}

/// The options of a collection under which the server checks what is written.
fn checking(name: &str, epoch: i32) -> Document {
    let level = level(name, epoch).unwrap_or("moderate");
    doc! { "validator": validator(name, epoch), "validationLevel": level }
}

/// Returns whether it did not exist before.
async fn create(database: &Database, name: &str, epoch: i32) -> Result<bool, DriverError> {
    let mut command = doc! { "create": name };
    command.extend(checking(name, epoch));
    match database.run_command(command).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(&*error.kind, ErrorKind::Command(error) if error.code == EXISTS) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Shards the collections and, where that is wanted, has a part of each on every shard.
async fn shard(
    cluster: &Cluster,
    found: &[CollectionState],
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let shards = cluster.shards().await?;
    if shards.is_empty() {
        return Err(OpenError::Failed(
            "the cluster has no shards: add one with sh.addShard()".to_owned(),
        ));
    }

    cluster.enable().await?;
    for found in found {
        let name = found.name;
        shard_one(cluster, found, progress).await?;
        if !options.spread {
            continue;
        }
        match name {
            IDENTITIES | ENDED => hand_out(cluster, found, &shards, progress).await?,
            // There are few of them.
            TENANTS | NAMES | SERVERS => {}
            JOURNAL | INBOX => {
                let ranges = presplit::of_buckets(shards.len());
                place(cluster, name, &ranges, &shards, progress).await?;
            }
            _ => place(cluster, name, &presplit::of_ids(shards.len()), &shards, progress).await?,
        }
    }

    Ok(())
}

/// Shards a collection. What was made on a replica set lacks the index of a hashed key, and has
/// documents.
async fn shard_one(
    cluster: &Cluster,
    found: &CollectionState,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), DriverError> {
    let (name, key) = (found.name, shard_key(found.name));
    if found.is_used && found.key.is_none() && key != by_order() {
        cluster.make_index(name, &key).await?;
        progress(&format!("{name}: has an index on {key}"));
    }
    let made = cluster.shard(name).await?;
    let key = cluster.key_of(name).await?.unwrap_or(key);
    progress(&format!("{name}: {} sharded on {key}", if made { "is now" } else { "was" }));
    Ok(())
}

/// Sees to it that every shard has some hashes, where nothing is there yet: MongoDB gives some to
/// each shard that is there when it shards an empty collection. Of what is in use, or was sharded
/// in ranges, the balancer takes care.
async fn hand_out(
    cluster: &Cluster,
    found: &CollectionState,
    shards: &[String],
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), DriverError> {
    let name = found.name;
    let is_hashed = cluster.key_of(name).await?.is_some_and(|key| key == shard_key(name));
    // Another run may be at the same: a step that it has made is no reason to stop.
    let mut in_vain = 0;
    while is_hashed && !found.is_used && in_vain < 2 {
        let Some(step) = presplit::next_step(&cluster.hashes(name, shards).await?, shards.len())
        else {
            break;
        };
        let done = match step {
            Step::Split(middle) => cluster.split(name, &middle.into()).await?,
            Step::Move(start, shard) => cluster.place(name, &start, &shards[shard]).await?,
        };
        in_vain = if done { 0 } else { in_vain + 1 };
    }
    progress(&format!("{name}: there are now chunks on {}", held(cluster, name, shards).await?));

    Ok(())
}

/// The number of chunks of a collection on each shard, in words.
async fn held(cluster: &Cluster, name: &str, shards: &[String]) -> Result<String, DriverError> {
    let chunks = cluster.chunks(name).await?;
    let count = |shard: &String| {
        format!("{shard} {}", chunks.iter().filter(|chunk| chunk.shard == *shard).count())
    };
    Ok(shards.iter().map(count).collect::<Vec<_>>().join(", "))
}

async fn place(
    cluster: &Cluster,
    name: &str,
    ranges: &[Range],
    shards: &[String],
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), DriverError> {
    let (mut cut, mut moved) = (0, 0);
    for range in ranges {
        cut += usize::from(cluster.split(name, &range.start).await?);
    }

    progress(&format!(
        "{name}: cut at {cut} of {} keys, the others were cut at before",
        ranges.len()
    ));
    let first = Range { start: Bson::MinKey, shard: 0 };
    for range in [&first].into_iter().chain(ranges) {
        moved += usize::from(cluster.place(name, &range.start, &shards[range.shard]).await?);
    }

    let held = held(cluster, name, shards).await?;
    progress(&format!("{name}: {moved} empty chunks moved; there are now chunks on {held}"));
    Ok(())
}

/// Makes the database a store.
async fn finish(database: &Database, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    let meta = database.collection::<Document>(META);
    let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
    let name = database.name();
    let version = Versions::NEW.schema;
    match meta.insert_one(Versions::NEW.document()).write_concern(majority).await {
        Ok(_) => progress(&format!("database {name} is a store of schema version {version} now")),
        Err(error) if Fault::from(error.clone()).is_duplicate() => {
            progress(&format!("database {name} was a store of schema version {version} before"));
        }
        Err(error) => return Err(error.into()),
    }

    Ok(())
}
