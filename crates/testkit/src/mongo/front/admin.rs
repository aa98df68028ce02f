//! Administrative commands, in terms of the internal commands of the config server and the shards,
//! as in mongos.

use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use super::chunks::is_hashed;
use super::fault::{Fault, is_ok};
use super::links::{CONFIG, Links, majority};
use super::tables::{Tables, collection, config};
use polynym_mongodb::hash;

/// Fields of the client connection, which are not forwarded.
const CONNECTION_FIELDS: [&str; 4] = ["lsid", "$clusterTime", "$db", "$readPreference"];

/// The command of the config server that a router sends for one of its own.
fn internal(name: &str) -> String {
    format!("_configsvr{}{}", name[..1].to_uppercase(), &name[1..])
}

impl Tables {
    pub async fn administer(
        &self,
        name: &str,
        database: &str,
        mut command: Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        CONNECTION_FIELDS.iter().for_each(|field| drop(command.remove(field)));
        let argument = command.get_str(name).unwrap_or_default().to_owned();
        let space = format!("{database}.{argument}");
        match name {
            "enableSharding" => self
                .create_database(&argument, command.get("primaryShard"), links)
                .await
                .map(|()| ok()),
            "shardCollection" => self.shard_collection(&argument, &command, links).await,
            "reshardCollection" => self.reshard(&argument, &command, links).await,
            "split" => self.split(&argument, &command, links).await,
            "moveChunk" | "moveRange" => self.move_chunk(&argument, &command, links).await,
            "listShards" => {
                Ok(doc! { "shards": config(links, "shards", doc! {}).await?, "ok": 1.0 })
            }
            "killSessions" => kill_sessions(&command, links).await,
            "listDatabases" => list_databases(&command, links).await,
            "balancerStart" | "balancerStop" | "balancerStatus" => {
                links.ask(CONFIG, "admin", doc! { internal(name): 1 }).await
            }
            "addShardToZone" | "removeShardFromZone" | "updateZoneKeyRange" => {
                let mut zone = doc! { internal(name): argument };
                zone.extend(command.into_iter().filter(|(field, _)| field != name));
                zone.insert("writeConcern", majority());
                links.ask(CONFIG, "admin", zone).await
            }
            "createIndexes" | "dropIndexes" => {
                self.on_owners(&space, database, command, links).await
            }
            "collMod" => self.change_collection(&argument, database, command, links).await,
            "collStats" => self.statistics(&space, database, command, links).await,
            "listIndexes" => {
                let first = self.chunks(&space, links).await?.all()[0];
                links.ask(first, database, command).await
            }
            "create" | "listCollections" | "dbStats" => {
                let primary = self.home(database, links).await?.primary;
                links.ask(primary, database, command).await
            }
            "drop" => {
                self.drop(doc! { "_shardsvrDropCollection": argument }, database, links).await
            }
            "dropDatabase" => self.drop(doc! { "_shardsvrDropDatabase": 1 }, database, links).await,
            _ => Err(Fault::own(59, "CommandNotFound", format!("no such command here: '{name}'"))),
        }
    }

    async fn shard_collection(
        &self,
        space: &str,
        command: &Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let (database, name) = space
            .split_once('.')
            .ok_or_else(|| Fault::own(73, "InvalidNamespace", "no collection"))?;
        let home = self.home(database, links).await?;
        let refresh = doc! { "_flushDatabaseCacheUpdates": database, "syncFromConfig": true };
        links.ask(home.primary, "admin", refresh).await?;

        let create = doc! {
            "_shardsvrCreateCollection": name,
            "shardKey": command.get("key").cloned(),
            "unique": command.get_bool("unique").unwrap_or(false),
            "presplitHashedZones": false,
            "writeConcern": majority(),
            "databaseVersion": home.version,
        };

        links.ask(home.primary, database, create).await?;
        self.forget(space);
        Ok(doc! { "collectionsharded": space, "ok": 1.0 })
    }

    /// Changes the shard key of a collection.
    async fn reshard(
        &self,
        space: &str,
        command: &Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let home =
            self.home(space.split_once('.').map_or(space, |(database, _)| database), links).await?;
        let mut reshard =
            doc! { "_shardsvrReshardCollection": space, "databaseVersion": home.version };
        let fields = ["key", "numInitialChunks"].into_iter();

        reshard.extend(
            fields.filter_map(|field| Some((field.to_owned(), command.get(field)?.clone()))),
        );
        reshard.insert("writeConcern", majority());

        let outcome = links.ask(home.primary, "admin", reshard).await;
        self.forget(space);
        outcome.map(|_| ok())
    }

    async fn split(
        &self,
        space: &str,
        command: &Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let middle = command
            .get_document("middle")
            .map_err(|_| Fault::own(9, "FailedToParse", "split needs a middle"))?;
        let (collection, chunk) = chunk(space, middle, links).await?;
        let shard = links.find(chunk.get_str("shard").unwrap_or_default())?;
        let split = doc! {
            "splitChunk": space,
            "from": chunk.get("shard").cloned(),
            "min": chunk.get("min").cloned(),
            "max": chunk.get("max").cloned(),
            "keyPattern": collection.get("key").cloned(),
            "splitKeys": [middle.clone()],
            "epoch": collection.get("lastmodEpoch").cloned(),
            "timestamp": collection.get("timestamp").cloned(),
        };

        let outcome = links.ask(shard, "admin", split).await;
        self.forget(space);
        outcome.map(|_| ok())
    }

    async fn move_chunk(
        &self,
        space: &str,
        command: &Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let first = |fields: [&str; 2]| fields.into_iter().find_map(|field| command.get(field));
        let (point, to) = (point_of_move(space, command, links).await?, first(["to", "toShard"]));
        let to = to.ok_or_else(|| Fault::own(9, "FailedToParse", "a move needs to or toShard"))?;
        let (_, chunk) = chunk(space, &point, links).await?;

        if chunk.get("shard") == Some(to) {
            return Ok(ok());
        }

        let mut moving =
            doc! { "_configsvrMoveRange": space, "min": chunk.get("min").cloned(), "toShard": to };
        let wait = first(["_waitForDelete", "waitForDelete"])
            .map(|wait| ("waitForDelete".to_owned(), wait.clone()));
        moving.extend(wait);
        moving.insert("writeConcern", majority());

        let outcome = links.ask(CONFIG, "admin", moving).await;
        self.forget(space);
        outcome.map(|_| ok())
    }

    /// Changes a collection by its coordinator on the primary shard of the database, which blocks
    /// migrations and changes it on all shards.
    async fn change_collection(
        &self,
        name: &str,
        database: &str,
        command: Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let home = self.home(database, links).await?;
        let mut change = doc! { "_shardsvrCollMod": name };
        change.extend(command.into_iter().filter(|(field, _)| field != "collMod"));
        change.extend(doc! { "databaseVersion": home.version, "writeConcern": majority() });
        links.ask(home.primary, database, change).await
    }

    /// Runs a command on every shard that owns chunks of a collection.
    async fn on_owners(
        &self,
        space: &str,
        database: &str,
        command: Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let mut last = doc! {};
        for shard in self.chunks(space, links).await?.all() {
            last = links.ask(shard, database, command.clone()).await?;
        }
        let fields = ["numIndexesBefore", "numIndexesAfter", "createdCollectionAutomatically"];
        let mut reply = doc! { "raw": {}, "ok": 1.0 };
        reply.extend(last.into_iter().filter(|(field, _)| fields.contains(&field.as_str())));
        Ok(reply)
    }

    async fn statistics(
        &self,
        space: &str,
        database: &str,
        command: Document,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let chunks = self.chunks(space, links).await?;
        let mut whole = doc! { "ns": space, "sharded": chunks.database.is_none() };
        let mut shards = Document::new();

        for shard in chunks.all() {
            let part = links.ask(shard, database, command.clone()).await?;
            for field in ["count", "size", "storageSize", "totalIndexSize"] {
                let number = |document: &Document| document.get(field).map_or(0, integer);
                whole.insert(field, number(&whole) + number(&part));
            }
            shards.insert(links.name(shard), part);
        }

        whole.extend(doc! { "shards": shards, "ok": 1.0 });
        Ok(whole)
    }

    async fn drop(
        &self,
        mut command: Document,
        database: &str,
        links: &mut Links,
    ) -> Result<Document, Fault> {
        let home = self.home(database, links).await?;
        command.extend(doc! { "databaseVersion": home.version, "writeConcern": majority() });
        let outcome = links.ask(home.primary, database, command).await;
        self.forget_database(database);
        outcome.map(|_| ok())
    }
}

fn ok() -> Document {
    doc! { "ok": 1.0 }
}

fn integer(value: &Bson) -> i64 {
    value
        .as_i64()
        .or(value.as_i32().map(i64::from))
        .or(value.as_f64().map(|value| value as i64))
        .unwrap_or_default()
}

/// Kills sessions on all shards. Fails, with the list of hosts, if one of them does not answer; the
/// others have killed them then.
async fn kill_sessions(command: &Document, links: &mut Links) -> Result<Document, Fault> {
    let mut command = command.clone();
    command.insert("$db", "admin");
    let raw = RawDocumentBuf::try_from(&command)?;
    let commands: Vec<_> = links.shards().map(|shard| (shard, raw.clone())).collect();
    let replies = links.send_all(&commands).await;
    let has_failed = |reply: &Result<RawDocumentBuf, Fault>| !reply.as_deref().is_ok_and(is_ok);
    let failed = commands.iter().zip(&replies).filter(|(_, reply)| has_failed(reply));
    let hosts: Vec<_> = failed.map(|((shard, _), _)| links.host(*shard)).collect();
    if hosts.is_empty() {
        return Ok(ok());
    }
    Err(Fault::status_details(doc! {
        "ok": 0.0, "code": 125, "codeName": "CommandFailed",
        "errmsg": "not all hosts answered", "failedHosts": hosts,
    }))
}

/// Lists the databases of all shards.
async fn list_databases(command: &Document, links: &mut Links) -> Result<Document, Fault> {
    let mut databases: Vec<Bson> = Vec::new();
    for shard in links.shards() {
        let reply = links.ask(shard, "admin", command.clone()).await?;
        let name = |database: &Bson| {
            database.as_document().and_then(|database| database.get("name").cloned())
        };
        for database in reply.get_array("databases").into_iter().flatten() {
            if !databases.iter().any(|known| name(known) == name(database)) {
                databases.push(database.clone());
            }
        }
    }

    Ok(doc! { "databases": databases, "ok": 1.0 })
}

/// Returns a point of the chunk to move: `find` holds a key, the other fields hold the start of a
/// chunk.
async fn point_of_move(
    space: &str,
    command: &Document,
    links: &mut Links,
) -> Result<Document, Fault> {
    let bound = command.get_array("bounds").ok().and_then(|bounds| bounds.first());
    if let Some(start) = bound.or(command.get("min")).and_then(Bson::as_document) {
        return Ok(start.clone());
    }

    let find = command.get_document("find");
    let find =
        find.map_err(|_| Fault::own(9, "FailedToParse", "a move needs find, bounds or min"))?;
    if collection(space, links).await?.is_none_or(|collection| !is_hashed(&collection)) {
        return Ok(find.clone());
    }

    let raw = RawDocumentBuf::try_from(find)?;
    let hash = raw.get("_id")?.and_then(hash);
    Ok(doc! { "_id": hash.ok_or_else(|| Fault::own(61, "ShardKeyNotFound", "find needs a key"))? })
}

/// Returns the row of a collection, and that of the chunk that owns a point of it.
async fn chunk(
    space: &str,
    point: &Document,
    links: &mut Links,
) -> Result<(Document, Document), Fault> {
    let missing = || Fault::own(118, "NamespaceNotSharded", format!("{space} is not sharded"));
    let collection = collection(space, links).await?.ok_or_else(missing)?;
    let owns = doc! {
        "uuid": collection.get("uuid").cloned(),
        "min": { "$lte": point.clone() },
        "max": { "$gt": point.clone() },
    };
    let chunk = config(links, "chunks", owns).await?.pop();
    Ok((collection, chunk.ok_or_else(|| Fault::own(2, "BadValue", "no chunk owns the point"))?))
}
