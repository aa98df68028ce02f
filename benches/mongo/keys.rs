//! Shard keys of identities: keys in order, hashes of keys, and keys after a short hash. Their cost
//! for a create and a look-up, their bytes, and the shards of a new tenant's identities.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use locality_uuid::{Generator, Mode, split_points};
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;
use mongodb::options::{ReadConcern, WriteConcern};
use mongodb::{Client, Collection, IndexModel};
use polynym::directory::User;
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;
use crate::bench::{Bench, Contender};
use crate::calls::Work;
use crate::documents::{self, Form};
use crate::people::{self, KINDS, People, mixed};
use crate::place::{Place, number};
use crate::report::Size;
use crate::servers::Servers;
use crate::stores::{IDENTITIES, USERS};

const COMPARISON: &str = "keys";
const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// Keys in the finds that look for many.
const MANY: u64 = 100;
/// Of all users, so many are loaded here.
const SHARE: u64 = 10;
/// Ranges for each shard.
const PIECES: usize = 2;
/// The number of the first person who is created: far from those that are loaded.
const FIRST: u64 = 1 << 40;

/// A way to keep identities.
struct Way {
    what: &'static str,
    form: Form,
    key: fn(String) -> String,
    /// Whether there is an index on hashes of `_id`, and on a cluster these are what it is sharded
    /// on.
    hashed: bool,
}

const WAYS: [Way; 3] = [
    Way { what: "the key, in order", form: documents::claims, key: |key| key, hashed: false },
    Way { what: "the key, hashed", form: documents::claims, key: |key| key, hashed: true },
    Way {
        what: "a hash before the key, in order",
        form: claims_after_hashes,
        key: after_hash,
        hashed: false,
    },
];

/// So many characters of a hash as there are shards for.
fn after_hash(key: String) -> String {
    format!("{:04x}{key}", xxh3_64(key.as_bytes()) as u16)
}

fn claims_after_hashes(user: &User) -> Vec<Document> {
    let mut claims = documents::claims(user);
    for claim in &mut claims {
        let key = claim.get_str("_id").unwrap_or_default().to_owned();
        claim.insert("_id", after_hash(key));
    }
    claims
}

pub async fn run(bench: &mut Bench, servers: &mut Servers, database: &str) -> Result<()> {
    let people = Arc::new(People::new((bench.users / SHARE).max(1_000))?);
    for (name, place) in
        [("replica set", servers.replica_set().await?), ("3 shards", servers.cluster().await?)]
    {
        let (mut creates, mut finds, mut finds_of_many) = (Vec::new(), Vec::new(), Vec::new());
        for (n, way) in WAYS.iter().enumerate() {
            let stored = Arc::new(
                Stored::load(&place, &format!("{database}_{n}"), way, people.clone()).await?,
            );
            bench.report.sizes.push(stored.size(&place, size_name(name, n)).await?);
            creates.push(Contender::new(
                format!("{name}, create"),
                way.what,
                Create(stored.clone()),
            ));
            finds.push(Contender::new(
                format!("{name}, find 1"),
                way.what,
                Find(stored.clone(), 1),
            ));
            finds_of_many.push(Contender::new(
                format!("{name}, find 100"),
                way.what,
                Find(stored, MANY),
            ));
        }
        bench.compare(COMPARISON, &place, people.len(), &CONCURRENCIES, &finds).await?;
        bench
            .compare(COMPARISON, &place, people.len(), &CONCURRENCIES[..2], &finds_of_many)
            .await?;
        bench.compare(COMPARISON, &place, people.len(), &CONCURRENCIES, &creates).await?;
    }
    Ok(())
}

fn size_name(place: &str, way: usize) -> &'static str {
    let on_cluster = place != "replica set";
    match (way, on_cluster) {
        (0, false) => "identities of a replica set, the key",
        (1, false) => "identities of a replica set, the key and an index on its hash",
        (_, false) => "identities of a replica set, a hash before the key",
        (0, true) => "identities of 3 shards, the key, in order",
        (1, true) => "identities of 3 shards, the key, hashed",
        (_, true) => "identities of 3 shards, a hash before the key, in order",
    }
}

/// Users and identities, kept in one of the ways.
struct Stored {
    client: Client,
    users: Collection<Document>,
    identities: Collection<Document>,
    people: Arc<People>,
    ids: Generator,
    way: &'static Way,
}

impl Stored {
    async fn load(
        place: &Place,
        database: &str,
        way: &'static Way,
        people: Arc<People>,
    ) -> Result<Self> {
        let shards = place.shards();
        let collection = |name| place.database(database).collection::<Document>(name);
        let (users, identities) = (collection(USERS), collection(IDENTITIES));
        if way.hashed && shards.is_empty() {
            identities
                .create_index(IndexModel::builder().keys(doc! { "_id": "hashed" }).build())
                .await?;
        }
        if !shards.is_empty() {
            let pieces = shards.len() * PIECES;
            let points = split_points(pieces).into_iter().map(|id| documents::uuid(id).into());
            place.spread(database, USERS, points.collect(), shards).await?;
            if way.hashed {
                place.hash(database, IDENTITIES).await?;
            } else {
                place.spread(database, IDENTITIES, cuts(way, &people, pieces)?, shards).await?;
            }
        }
        eprintln!("keys: loading {} users, {}", people.len(), way.what);
        place.load(&users, &people, documents::users).await?;
        place.load(&identities, &people, way.form).await?;
        place.settle().await?;
        let client = users.client().clone();
        Ok(Self { client, users, identities, people, ids: Generator::new(Mode::Variable), way })
    }

    async fn size(&self, place: &Place, what: &'static str) -> Result<Size> {
        let namespace = self.identities.namespace();
        let mut size =
            Size { what, documents: 0, data_bytes: 0.0, disk_bytes: 0.0, index_bytes: 0.0 };
        for part in place.parts(&namespace.db, &namespace.coll) {
            let database = part.client().database(&namespace.db);
            let stats = database.run_command(doc! { "collStats": &namespace.coll }).await?;
            size.documents += number(&stats, "count")? as u64;
            size.data_bytes += number(&stats, "size")?;
            size.disk_bytes += number(&stats, "storageSize")?;
            size.index_bytes += number(&stats, "totalIndexSize")?;
        }
        Ok(size)
    }

    /// One transaction, as the store's: the user, then its claims.
    async fn create(&self, user: &User) -> mongodb::error::Result<()> {
        let mut session = self.client.start_session().causal_consistency(false).await?;
        let begin = session.start_transaction().read_concern(ReadConcern::snapshot());
        begin.write_concern(WriteConcern::majority()).await?;
        self.users.insert_many(documents::users(user)).session(&mut session).await?;
        self.identities.insert_many((self.way.form)(user)).session(&mut session).await?;
        session.commit_transaction().await
    }
}

/// The boundaries of equal parts of the identities: better than any table could have them.
fn cuts(way: &Way, people: &People, pieces: usize) -> Result<Vec<Bson>> {
    let mut keys = Vec::new();
    for n in 0..people.len() {
        for kind in 0..KINDS {
            keys.push((way.key)(people::key(n, kind)?.into_string()));
        }
    }
    keys.sort_unstable();
    Ok((1..pieces).map(|n| keys[keys.len() * n / pieces].clone().into()).collect())
}

struct Create(Arc<Stored>);
/// Finds so many claims at once.
struct Find(Arc<Stored>, u64);

#[async_trait]
impl Work for Create {
    async fn call(&self, number: u64) -> Result<()> {
        let user = people::outcome(&people::creation(FIRST + number, self.0.ids.next_id()), None)?;
        loop {
            match self.0.create(&user).await {
                Err(error) if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => {}
                outcome => return Ok(outcome?),
            }
        }
    }
}

#[async_trait]
impl Work for Find {
    async fn call(&self, number: u64) -> Result<()> {
        let Self(stored, count) = self;
        let key = |n: u64| {
            let pick = mixed(number * count + n) % (stored.people.len() * KINDS);
            Ok((stored.way.key)(people::key(pick / KINDS, pick % KINDS)?.into_string()))
        };
        let mut keys = (0..*count).map(key).collect::<Result<Vec<_>>>()?;
        keys.sort_unstable();
        keys.dedup();
        let filter = if keys.len() == 1 {
            doc! { "_id": &keys[0] }
        } else {
            doc! { "_id": { "$in": &keys } }
        };
        let found = stored.identities.find(filter).batch_size(keys.len() as u32 + 1).await?;
        let found: Vec<Document> = found.try_collect().await?;
        if found.len() == keys.len() { Ok(()) } else { Err("a claim is missing".into()) }
    }
}
