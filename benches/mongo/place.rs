//! A MongoDB to measure on: a replica set, or a sharded cluster and what lies where in it.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{ClientOptions, ReadConcern, WriteConcern};
use mongodb::{Client, Collection, Database};

use crate::Result;
use crate::documents::Form;
use crate::people::People;

/// As many connections as the store takes.
const CONNECTIONS: u32 = 100;
/// People whose documents are sent together, and how many such requests are under way.
const TOGETHER: u64 = 1_000;
const REQUESTS: usize = 4;

pub struct Place {
    uri: String,
    client: Client,
    /// Straight to each server that holds data.
    holders: Vec<Client>,
    /// The names of the shards; none on a replica set.
    shards: Vec<String>,
    /// The version that the servers say they are.
    version: String,
}

impl Place {
    pub async fn open(uri: &str) -> Result<Self> {
        let client = connect(uri, false).await?;
        let admin = client.database("admin");
        let hello = admin.run_command(doc! { "hello": 1 }).await?;
        let (shards, hosts) = if hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid") {
            shards(&admin).await?
        } else {
            let primary = hello.get_str("primary").map_err(|_| "no replica set with a primary")?;
            (Vec::new(), vec![primary.to_owned()])
        };
        let mut holders = Vec::new();
        for host in hosts {
            holders.push(connect(&format!("mongodb://{host}/"), true).await?);
        }
        let build = admin.run_command(doc! { "buildInfo": 1 }).await?;
        Ok(Self {
            uri: uri.to_owned(),
            client,
            holders,
            shards,
            version: build.get_str("version")?.to_owned(),
        })
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn shards(&self) -> &[String] {
        &self.shards
    }

    pub fn database(&self, name: &str) -> Database {
        self.client.database(name)
    }

    /// The address with the name of a database.
    pub fn uri_of(&self, database: &str) -> String {
        let (head, query) = self
            .uri
            .split_once('?')
            .map_or((&*self.uri, String::new()), |(h, q)| (h, format!("?{q}")));
        let hosts = head.trim_start_matches("mongodb://").split('/').next().unwrap_or_default();
        format!("mongodb://{hosts}/{database}{query}")
    }

    /// The same collection straight from each server that holds a part of it.
    pub fn parts(&self, database: &str, collection: &str) -> Vec<Collection<Document>> {
        self.holders.iter().map(|holder| holder.database(database).collection(collection)).collect()
    }

    /// Microseconds of processor time that the servers which hold data have taken since they
    /// started.
    pub async fn cpu_us(&self) -> Result<f64> {
        let mut sum = 0.0;
        for holder in &self.holders {
            let status = holder.database("admin").run_command(doc! { "serverStatus": 1 }).await?;
            let info = status.get_document("extra_info")?;
            sum += number(info, "user_time_us")? + number(info, "system_time_us")?;
        }
        Ok(sum)
    }

    /// Has every server write what it has to its disk, so that the sizes of files are those of what
    /// they hold.
    pub async fn settle(&self) -> Result<()> {
        for holder in &self.holders {
            holder.database("admin").run_command(doc! { "fsync": 1 }).await?;
        }
        Ok(())
    }

    /// Inserts what `form` makes of everybody.
    pub async fn load(
        &self,
        collection: &Collection<Document>,
        people: &Arc<People>,
        form: Form,
    ) -> Result<()> {
        let ranges = (0..people.len()).step_by(TOGETHER as usize);
        let loads = ranges.map(|from| {
            let (collection, people) = (collection.clone(), people.clone());
            async move { tokio::spawn(load_some(collection, people, from, form)).await? }
        });
        stream::iter(loads).buffer_unordered(REQUESTS).try_collect().await
    }

    /// Shards a collection on `_id`, cuts it at `points`, and deals the pieces out to `shards` in
    /// turn.
    pub async fn spread(
        &self,
        database: &str,
        name: &str,
        points: Vec<Bson>,
        shards: &[String],
    ) -> Result<()> {
        let admin = self.client.database("admin");
        let namespace = format!("{database}.{name}");
        admin.run_command(doc! { "enableSharding": database }).await?;
        admin.run_command(doc! { "shardCollection": &namespace, "key": { "_id": 1 } }).await?;
        for point in &points {
            admin.run_command(doc! { "split": &namespace, "middle": { "_id": point } }).await?;
        }
        let starts = [Bson::MinKey].into_iter().chain(points);
        for (start, shard) in starts.zip(shards.iter().cycle()) {
            self.move_piece(&namespace, doc! { "_id": start }, shard).await?;
        }
        Ok(())
    }

    /// Shards a collection on hashes of `_id`, of which MongoDB gives each shard a part.
    pub async fn hash(&self, database: &str, name: &str) -> Result<()> {
        let admin = self.client.database("admin");
        admin.run_command(doc! { "enableSharding": database }).await?;
        let namespace = format!("{database}.{name}");
        admin
            .run_command(doc! { "shardCollection": namespace, "key": { "_id": "hashed" } })
            .await?;
        Ok(())
    }

    /// Moves all pieces of a collection to these shards.
    pub async fn confine(&self, database: &str, name: &str, shards: &[String]) -> Result<()> {
        let (config, namespace) = (self.client.database("config"), format!("{database}.{name}"));
        let entry = config
            .collection::<Document>("collections")
            .find_one(doc! { "_id": &namespace })
            .await?;
        let uuid = entry
            .as_ref()
            .and_then(|entry| entry.get("uuid"))
            .ok_or("a collection that is not sharded")?;
        let pieces = config.collection::<Document>("chunks").find(doc! { "uuid": uuid }).await?;
        let pieces: Vec<Document> = pieces.try_collect().await?;
        let elsewhere = pieces
            .iter()
            .filter(|p| !shards.iter().any(|shard| p.get_str("shard").is_ok_and(|at| at == shard)));
        for (piece, shard) in elsewhere.zip(shards.iter().cycle()) {
            let bounds = [piece.get_document("min")?.clone(), piece.get_document("max")?.clone()];
            let command = doc! { "moveChunk": &namespace, "bounds": bounds.to_vec(), "to": shard };
            self.client.database("admin").run_command(command).await?;
        }
        Ok(())
    }

    async fn move_piece(&self, namespace: &str, start: Document, shard: &str) -> Result<()> {
        let command = doc! { "moveChunk": namespace, "find": start, "to": shard };
        self.client.database("admin").run_command(command).await?;
        Ok(())
    }
}

async fn connect(uri: &str, straight: bool) -> Result<Client> {
    let mut options = ClientOptions::parse(uri).await?;
    options.max_pool_size = Some(CONNECTIONS);
    options.read_concern = Some(ReadConcern::majority());
    options.write_concern = Some(WriteConcern::majority());
    if straight {
        options.direct_connection = Some(true);
    }
    Ok(Client::with_options(options)?)
}

/// The names of the shards, and for each a server that holds it.
async fn shards(admin: &Database) -> Result<(Vec<String>, Vec<String>)> {
    let listed = admin.run_command(doc! { "listShards": 1 }).await?;
    let shards = listed.get_array("shards")?.iter().filter_map(Bson::as_document);
    let shard = |shard: &Document| {
        let (name, host) = (shard.get_str("_id")?, shard.get_str("host")?);
        let members = host.split_once('/').map_or(host, |(_, members)| members);
        Ok((name.to_owned(), members.split(',').next().unwrap_or_default().to_owned()))
    };
    Ok(shards.map(shard).collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

async fn load_some(
    collection: Collection<Document>,
    people: Arc<People>,
    from: u64,
    form: Form,
) -> Result<()> {
    let mut documents = Vec::new();
    for n in from..people.len().min(from + TOGETHER) {
        documents.extend(form(&people.user(n)?));
    }
    collection.insert_many(documents).ordered(false).await?;
    Ok(())
}

/// A number of whichever type the server took for it.
pub fn number(document: &Document, field: &str) -> Result<f64> {
    match document.get(field) {
        Some(Bson::Int32(number)) => Ok(f64::from(*number)),
        Some(Bson::Int64(number)) => Ok(*number as f64),
        Some(Bson::Double(number)) => Ok(*number),
        _ => Err(format!("the server does not tell {field}").into()),
    }
}
