//! Several servers add the same and different names of attributes concurrently, on a replica set
//! and on a cluster: all servers agree on one id for each name.

use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::Database;
use mongodb::bson::{Document, doc};
use polynym_directory::{
    Backend, Error, Filter, Mutation, NewUser, Tenant, User, UserChange, Value, View,
};
use polynym_identifier::Rules;
use polynym_mongodb::Options;

use crate::stores::{OwnSet, TIMEOUT, cluster, fresh, open, prepare, prepare_sharded};
use crate::users;

/// The number of servers.
const SERVERS: usize = 3;
/// Users of each server: they bring more names than one document holds.
const USERS: usize = 60;
/// Concurrent creations by each server.
const CONCURRENT_CREATIONS: usize = 12;

/// Fails unless each name is stored once, in rows of consecutive tokens. Returns their number.
pub async fn names_have_one_token(database: &Database) -> usize {
    let names = database.collection::<Document>("names");
    let pages: Vec<Document> =
        names.find(doc! {}).sort(doc! { "_id": 1 }).await.unwrap().try_collect().await.unwrap();
    let (mut next, mut seen) = (0, BTreeSet::new());
    for page in pages {
        assert_eq!(page.get_i32("l").unwrap(), next, "the first token of {page}");
        for name in page.get_array("n").unwrap() {
            assert!(seen.insert(name.to_string()), "{name} has two tokens");
            next += 1;
        }
    }
    seen.len()
}

/// Creates a user with a name of its own, one shared with a user of each server, and one shared
/// with many.
fn creation(server: usize, n: usize) -> Mutation {
    let names = [format!("own {server} {n}"), format!("shared {n}"), format!("common {}", n % 7)];
    let attributes = names.into_iter().map(|name: String| (name, Value::Int(n as i64))).collect();
    let new = NewUser { attributes, ..NewUser::default() };
    users::mutation(users::id(server * USERS + n), UserChange::Create(new))
}

/// Creates a user, with retries: on a busy cluster an attempt may fail.
async fn create_one(store: &Backend, creation: Mutation) -> User {
    let since = Instant::now();
    loop {
        match store.mutations.mutate(creation.clone()).await {
            Err(Error::Unavailable(_)) if since.elapsed() < TIMEOUT => {}
            outcome => return outcome.unwrap().into_user().unwrap(),
        }
    }
}

async fn create(store: &Backend, server: usize) -> Vec<User> {
    let created = (0..USERS).map(|n| create_one(store, creation(server, n)));
    stream::iter(created.collect::<Vec<_>>()).buffered(CONCURRENT_CREATIONS).collect().await
}

async fn servers_agree(uri: &str, database: &Database) {
    let mut stores = Vec::new();
    for _ in 0..SERVERS {
        stores.push(open(uri, Options::default(), false).await);
    }
    let creations = stores.iter().enumerate().map(|(n, store)| create(store, n));
    let created: Vec<_> = join_all(creations).await.into_iter().flatten().collect();
    assert_eq!(names_have_one_token(database).await, SERVERS * USERS + USERS + 7);

    stores.push(open(uri, Options::default(), false).await);
    let ids: Vec<_> = created.iter().map(|user| user.id).collect();
    for store in &stores {
        let found = store.lookups.get(&Tenant::DEFAULT, &ids, View::Full).await.unwrap();
        for (found, wanted) in found.into_iter().zip(&created) {
            assert_eq!(&found.unwrap().unwrap().decode().unwrap(), wanted);
        }
        let filter = Filter::parse("attributes.\"shared 5\" = 5", &[Rules::PRESENT]).unwrap();
        let path = filter.access_paths().remove(0);
        let records =
            store.search.search(&Tenant::DEFAULT, &path, None, 10, View::Full).await.unwrap();
        let found: BTreeSet<_> = records.into_readable().map(|found| found.user.id).collect();
        assert_eq!(found, (0..SERVERS).map(|server| users::id(server * USERS + 5)).collect());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_adding_names_concurrently_agree() {
    let (set, name) = (OwnSet::new().await, fresh());
    prepare(&set, &name).await;
    servers_agree(&set.uri(&name, ""), &set.client().await.database(&name)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_adding_names_concurrently_agree_on_a_cluster() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let database = cluster.client().await.database(&name);
    servers_agree(&cluster.uri(&name), &database).await;
    database.drop().await.unwrap();
}
