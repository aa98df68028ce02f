//! Tenants that are deleted by one of two servers, while users are registered through the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, LocalityId, Mode};
use mongodb::Database;
use mongodb::bson::{Document, doc};
use polynym_directory::{
    Directory, Error, Limits, MutationCall, PolicyUpdate, RawIdentity, Tenant, Value, View,
};
use polynym_identifier::RawIdentifier;
use tokio::task::JoinHandle;

use crate::servers::{self, Databases, InDatabase};
use crate::support::users;

const PATIENCE: Duration = Duration::from_secs(300);

fn acme() -> Tenant {
    Tenant::parse("acme").unwrap()
}

fn call(method: &'static str) -> MutationCall<'static> {
    users::call(acme(), method)
}

/// A server, whose upkeep ends with the test.
async fn server(place: &InDatabase) -> Arc<Directory> {
    let store = Arc::new(place.mongo().await.unwrap()).backend();
    let directory =
        Directory::new(store, Generator::new(Mode::Variable), Limits::default()).closed();
    let directory = Arc::new(directory);
    let upkeep = directory.clone();
    tokio::spawn(async move { upkeep.run_tenant_jobs().await });
    directory
}

async fn make(server: &Directory) {
    server.set_tenant(call("UpdateTenant"), PolicyUpdate::default()).await.unwrap();
}

async fn register(server: &Directory, n: usize) -> Result<LocalityId, Error> {
    let name = format!("user{n}");
    let identifier = Some(RawIdentifier::Handle(&name));
    let identities = [RawIdentity { identifier, display: "", verification: None, primary: false }];
    let attributes: BTreeMap<String, Value> = BTreeMap::new();
    server
        .create(call("CreateUser"), String::new(), &identities, attributes)
        .await
        .map(|user| user.id)
}

/// Registers users until the tenant is refused. Returns those who were told that they are
/// registered.
fn register_all(server: Arc<Directory>, first: usize) -> JoinHandle<Vec<LocalityId>> {
    tokio::spawn(async move {
        let (mut ids, begun) = (Vec::new(), Instant::now());
        for n in first.. {
            match register(&server, n).await {
                Ok(id) => ids.push(id),
                Err(Error::TenantNotFound) => break,
                Err(error) => println!("{error}"),
            }
            assert!(begun.elapsed() < PATIENCE, "the tenant is never refused");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ids
    })
}

async fn is_there(server: &Directory) -> bool {
    server.tenant(&acme()).await.is_ok()
}

/// The tenant's remaining documents in a database: users, keys, tenants.
async fn left(database: &Database) -> [u64; 3] {
    let count = async |name: &str, filter: Document| {
        database.collection::<Document>(name).count_documents(filter).await.unwrap()
    };
    let keys = doc! { "_id": { "$regex": "^acme," } };
    let users = count("users", doc! { "t": "acme" }).await;
    [users, count("identities", keys).await, count("tenants", doc! { "_id": "acme" }).await]
}

async fn database(place: &InDatabase) -> Database {
    servers::one_member().await.client().await.database(place.name().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_registers_while_a_tenant_goes_goes_with_it() {
    let place = Databases::of_set(servers::one_member().await, "").place();
    let (one, other) = (server(&place).await, server(&place).await);
    make(&one).await;
    let registering = register_all(other.clone(), 0);
    while !matches!(register(&one, 1_000_000).await, Err(Error::IdentityTaken { .. })) {}
    one.delete_tenant(call("DeleteTenant"), true).await.unwrap();
    assert!(
        matches!(register(&one, 2_000_000).await, Err(Error::TenantNotFound)),
        "by its own server at once"
    );
    let registered = registering.await.unwrap();
    assert!(!registered.is_empty());
    let begun = Instant::now();
    while is_there(&one).await {
        assert!(begun.elapsed() < PATIENCE, "the tenant stays");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(left(&database(&place).await).await, [0, 0, 0]);
    for server in [&one, &other] {
        assert!(matches!(register(server, 0).await, Err(Error::TenantNotFound)));
    }
}

/// The other server has not heard of the mark yet: what it registers keeps the tenant.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_tenant_that_gets_a_user_at_the_last_moment_stays() {
    let place = Databases::of_set(servers::one_member().await, "").place();
    let (one, other) = (server(&place).await, server(&place).await);
    make(&one).await;
    // By this the other server knows the tenant.
    let id = register(&other, 0).await.unwrap();
    other.purge(call("PurgeUser"), &id.to_string()).await.unwrap();
    one.delete_tenant(call("DeleteTenant"), false).await.unwrap();
    let late = register(&other, 1).await.unwrap();
    let begun = Instant::now();
    while one.tenant(&acme()).await.unwrap().deletion.is_some() {
        assert!(begun.elapsed() < PATIENCE, "the mark stays");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(
        other
            .get(&users::context(acme(), "GetUser"), &late.to_string(), View::Full)
            .await
            .unwrap()
            .user
            .decode()
            .unwrap()
            .id,
        late
    );
    let begun = Instant::now();
    while register(&one, 2).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody can register");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
