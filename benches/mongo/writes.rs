//! The cost of a transaction: users created and identities linked by the store, and the same
//! documents written by plain inserts, one collection after the other. On a replica set, on one
//! shard and on three.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use locality_uuid::{Generator, LocalityId, Mode};
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};
use polynym::directory::{Backend, EncodedUser, Mutation, Record, User};
use polynym::identifier::IdentityKey;

use crate::bench::{Bench, Contender};
use crate::calls::Work;
use crate::people::{self, KINDS, People};
use crate::place::{Place, number};
use crate::servers::Servers;
use crate::stores::{IDENTITIES, USERS, open};
use crate::{Result, documents};

const COMPARISON: &str = "writes";
const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// Of all users, so many are loaded here: the users that are linked.
const SHARE: u64 = 10;
/// The number of the first person who is created: far from those that are loaded.
const FIRST: u64 = 1 << 40;

pub async fn run(bench: &mut Bench, servers: &mut Servers, database: &str) -> Result<()> {
    let people = Arc::new(People::new((bench.users / SHARE).max(1_000))?);
    let set = servers.replica_set().await?;
    let places = [("replica set", set.clone(), Vec::new())];
    let cluster = servers.cluster().await?;
    let shards = cluster.shards();
    let sharded = [("1 shard", 1), ("3 shards", shards.len())];
    let sharded = sharded.map(|(name, count)| (name, cluster.clone(), shards[..count].to_vec()));
    for (name, place, shards) in places.into_iter().chain(sharded) {
        let database = format!("{database}_{}", shards.len());
        let stored = Arc::new(Stored::load(&place, &database, &shards, people.clone()).await?);
        let contenders = [
            Contender::new(name, "create, one transaction", CreateAtOnce(stored.clone())),
            Contender::new(name, "create, plain inserts", CreatePlainly(stored.clone())),
            Contender::new(name, "link, one transaction", LinkAtOnce(stored.clone())),
            Contender::new(name, "link, plain writes", LinkPlainly(stored.clone())),
        ];
        bench.compare(COMPARISON, &place, people.len(), &CONCURRENCIES, &contenders).await?;
        stored.check().await?;
    }
    Ok(())
}

/// A store, and its collections beside it.
struct Stored {
    store: Backend,
    identities: Collection<Document>,
    users: Collection<Document>,
    people: Arc<People>,
    ids: Generator,
    /// The expected numbers of users and claims.
    expected: [AtomicU64; 2],
}

impl Stored {
    async fn load(
        place: &Place,
        database: &str,
        shards: &[String],
        people: Arc<People>,
    ) -> Result<Self> {
        let store = open(place, database, shards).await?;
        let collection = |name| place.database(database).collection(name);
        let (identities, users) = (collection(IDENTITIES), collection(USERS));
        place.load(&users, &people, documents::users).await?;
        place.load(&identities, &people, documents::claims).await?;
        let expected = [people.len(), people.len() * KINDS].map(AtomicU64::new);
        Ok(Self { store, identities, users, people, ids: Generator::new(Mode::Variable), expected })
    }

    /// A new person, and nobody else who is new has the same number.
    fn creation(&self, number: u64) -> Mutation {
        people::creation(FIRST + number, self.ids.next_id())
    }

    /// The user for whom call `number` links something. Calls that follow each other take different
    /// ones.
    fn linked(&self, number: u64) -> LocalityId {
        self.people.id(number % self.people.len())
    }

    /// Takes down that a user has been created, or has got one claim more.
    fn created(&self, user: &User, mutation: &Mutation) -> Result<()> {
        if Some(user.id) != mutation.user_id() || user.identities.len() as u64 != KINDS {
            return Err("a user was created as another one".into());
        }
        self.expected[0].fetch_add(1, Ordering::Relaxed);
        self.expected[1].fetch_add(KINDS, Ordering::Relaxed);
        Ok(())
    }

    fn has_linked(&self, user: &User, key: &IdentityKey, id: LocalityId) -> Result<()> {
        if user.id != id || !user.identities.iter().any(|identity| key.is_of(&identity.identifier))
        {
            return Err("an identity was not linked".into());
        }
        self.expected[1].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether everything that was written is there.
    async fn check(&self) -> Result<()> {
        for (collection, expected) in
            [&self.users, &self.identities].into_iter().zip(&self.expected)
        {
            let mut counted = collection.aggregate([doc! { "$count": "n" }]).await?;
            let counted = counted.try_next().await?.map_or(Ok(0.0), |count| number(&count, "n"))?;
            let expected = expected.load(Ordering::Relaxed);
            if counted != expected as f64 {
                return Err(format!(
                    "{counted} documents in {}, not {expected}",
                    collection.name()
                )
                .into());
            }
        }
        Ok(())
    }
}

struct CreateAtOnce(Arc<Stored>);
struct CreatePlainly(Arc<Stored>);
struct LinkAtOnce(Arc<Stored>);
struct LinkPlainly(Arc<Stored>);

#[async_trait]
impl Work for CreateAtOnce {
    async fn call(&self, number: u64) -> Result<()> {
        let mutation = self.0.creation(number);
        let user = self.0.store.mutations.mutate(mutation.clone()).await?.into_user()?;
        self.0.created(&user, &mutation)
    }
}

#[async_trait]
impl Work for CreatePlainly {
    async fn call(&self, number: u64) -> Result<()> {
        let mutation = self.0.creation(number);
        let user = people::outcome(&mutation, None)?;
        self.0.users.insert_many(documents::users(&user)).await?;
        self.0.identities.insert_many(documents::claims(&user)).ordered(true).await?;
        self.0.created(&user, &mutation)
    }
}

#[async_trait]
impl Work for LinkAtOnce {
    async fn call(&self, number: u64) -> Result<()> {
        let id = self.0.linked(number);
        let user = self.0.store.mutations.mutate(people::link(id, number)).await?.into_user()?;
        self.0.has_linked(&user, &people::link_key(number)?, id)
    }
}

#[async_trait]
impl Work for LinkPlainly {
    async fn call(&self, number: u64) -> Result<()> {
        let (id, key) = (self.0.linked(number), people::link_key(number)?);
        let found =
            self.0.users.find_one(doc! { "_id": documents::uuid(id) }).await?.ok_or("no user")?;
        let before = Record::decode(
            &EncodedUser::from_stored(found.get_binary_generic("w")?.clone().into()),
            &[],
        )?;
        let user = people::outcome(&people::link(id, number), Some(before))?;
        let revision = found.get_i64("r")?;
        let mut after = found;
        after.extend([
            ("r".to_owned(), Bson::from(revision + 1)),
            ("w".to_owned(), documents::wire(&user).into()),
        ]);
        let filter = doc! { "_id": documents::uuid(id), "r": revision };
        if self.0.users.replace_one(filter, after).await?.matched_count != 1 {
            return Err("a user changed meanwhile".into());
        }
        self.0.identities.insert_one(documents::claim(key.as_str(), id)).await?;
        self.0.has_linked(&user, &key, id)
    }
}
