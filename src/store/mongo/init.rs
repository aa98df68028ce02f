//! `store init`: makes in a database of MongoDB what a store needs, and says what it did. Every step looks first whether
//! it is done, so that it can be run again, after an interruption or beside another run, and changes nothing that is in
//! use. The last step is the document without which nobody takes the database for a store.

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::options::{Acknowledgment, WriteConcern};

use super::cluster::{Cluster, patiently};
use super::connect::{check_schema, connect, disconnect};
use super::error::{Fault, OpenError};
use super::schema::{ID, IDENTITIES, META, RULES, SCHEMA, SERVERS, TENANTS, VERSION};
use super::shape::{by_order, index, shard_key, validator};
use super::spread::{self, Range, Step};
use super::survey::{Found, obstacle, survey};

/// NamespaceExists.
const EXISTS: i32 = 48;

/// What [`init`] is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitOptions {
    /// Whether users and requests are cut and placed over all shards at once, or left to the balancer. MongoDB itself
    /// spreads identities.
    pub spread: bool,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self { spread: true }
    }
}

/// Makes a store in the database that `uri` names, and tells `progress` of each step in a sentence. What is there already
/// stays as it is, but for chunks without documents, which may be moved to another shard.
///
/// # Errors
/// [`OpenError`], where nothing was changed: where the server cannot keep a store, or the database holds a store of
/// another version or anything else under the names that a store uses. Where a step fails, what was made stays, and
/// another run goes on from there.
pub async fn init(uri: &str, options: &InitOptions, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
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
    let found = survey(database, cluster.as_ref()).await?;
    // Read after what it vouches for: a run that finishes meanwhile has made what was found.
    let is_store = is_store(database).await?;
    if let Some(what) = obstacle(&found, is_store) {
        return Err(OpenError::Foreign { database: database.name().to_owned(), what });
    }
    for found in &found {
        make(database, found, progress).await?;
    }
    if let Some(cluster) = &cluster {
        shard(cluster, &found, options, progress).await?;
    }
    finish(database, progress).await
}

/// Whether a store of the present version was made here.
async fn is_store(database: &Database) -> Result<bool, OpenError> {
    match check_schema(database).await {
        Err(OpenError::NotInitialised { database: name }) => {
            match database.collection::<Document>(META).find_one(doc! {}).await? {
                None => Ok(false),
                Some(_) => {
                    Err(OpenError::Foreign { database: name, what: format!("{META} with something else in it") })
                }
            }
        }
        checked => checked.map(|()| true),
    }
}

/// Makes a collection, its validator and its index.
async fn make(database: &Database, found: &Found, progress: &(dyn Fn(&str) + Sync)) -> Result<(), DriverError> {
    let name = found.name;
    let made = !found.exists() && create(database, name).await?;
    if !made && !found.is_checked() {
        let command = doc! { "collMod": name, "validator": validator(name), "validationLevel": "moderate" };
        patiently(async || database.run_command(command.clone()).await).await?;
    }
    progress(&match (made, found.is_checked()) {
        (true, _) => format!("{name}: made"),
        (false, true) => format!("{name}: was there"),
        (false, false) => format!("{name}: was there; its validator was set"),
    });
    let Some(index) = index(name).filter(|_| !found.is_indexed()) else { return Ok(()) };
    let command = match found.index_on(&index) {
        None => doc! { "createIndexes": name, "indexes": [index] },
        Some(_) => {
            let seconds = index.get("expireAfterSeconds").cloned();
            doc! { "collMod": name, "index": { "keyPattern": index.get("key").cloned(), "expireAfterSeconds": seconds } }
        }
    };
    patiently(async || database.run_command(command.clone()).await).await?;
    progress(&format!("{name}: its index was made"));
    Ok(())
}

/// Says whether nobody made it first.
async fn create(database: &Database, name: &str) -> Result<bool, DriverError> {
    let command = doc! { "create": name, "validator": validator(name), "validationLevel": "moderate" };
    match database.run_command(command).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(&*error.kind, ErrorKind::Command(error) if error.code == EXISTS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Shards the collections and, where that is wanted, has a part of each on every shard.
async fn shard(
    cluster: &Cluster,
    found: &[Found],
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let shards = cluster.shards().await?;
    if shards.is_empty() {
        return Err(OpenError::Failed("the cluster has no shards: add one with sh.addShard()".to_owned()));
    }
    cluster.enable().await?;
    for found in found {
        let name = found.name;
        shard_one(cluster, found, progress).await?;
        if !options.spread {
            continue;
        }
        match name {
            IDENTITIES => hand_out(cluster, found, &shards, progress).await?,
            // There are few of them.
            TENANTS | SERVERS => {}
            _ => place(cluster, name, &spread::of_ids(shards.len()), &shards, progress).await?,
        }
    }
    Ok(())
}

/// Shards a collection. What was made on a replica set lacks the index of a hashed key, and has documents.
async fn shard_one(cluster: &Cluster, found: &Found, progress: &(dyn Fn(&str) + Sync)) -> Result<(), DriverError> {
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

/// Sees to it that every shard has some hashes, where nothing is there yet: MongoDB gives some to each shard that is
/// there when it shards an empty collection. Of what is in use, or was sharded in ranges, the balancer takes care.
async fn hand_out(
    cluster: &Cluster,
    found: &Found,
    shards: &[String],
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), DriverError> {
    let name = found.name;
    let is_hashed = cluster.key_of(name).await?.is_some_and(|key| key == shard_key(name));
    // Another run may be at the same: a step that it has made is no reason to stop.
    let mut in_vain = 0;
    while is_hashed && !found.is_used && in_vain < 2 {
        let Some(step) = spread::next_step(&cluster.hashes(name, shards).await?, shards.len()) else { break };
        let done = match step {
            Step::Split(middle) => cluster.split(name, &middle.into()).await?,
            Step::Move(start, shard) => cluster.place(name, &start, &shards[shard]).await?,
        };
        in_vain = if done { 0 } else { in_vain + 1 };
    }
    progress(&format!("{name}: there are now chunks on {}", held(cluster, name, shards).await?));
    Ok(())
}

/// How many chunks of a collection each shard has, in words.
async fn held(cluster: &Cluster, name: &str, shards: &[String]) -> Result<String, DriverError> {
    let chunks = cluster.chunks(name).await?;
    let count = |shard: &String| format!("{shard} {}", chunks.iter().filter(|chunk| chunk.shard == *shard).count());
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
    progress(&format!("{name}: cut at {cut} of {} keys, the others were cut at before", ranges.len()));
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
    match meta.insert_one(doc! { ID: SCHEMA, RULES: VERSION }).write_concern(majority).await {
        Ok(_) => progress(&format!("database {name} is a store of schema version {VERSION} now")),
        Err(error) if Fault::from(error.clone()).is_duplicate() => {
            progress(&format!("database {name} was a store of schema version {VERSION} before"));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
