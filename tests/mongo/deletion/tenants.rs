//! Tenants that one of two servers deletes while the other registers users.

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

const TIMEOUT: Duration = Duration::from_secs(300);

fn acme() -> Tenant {
    Tenant::parse("acme").unwrap()
}

fn call(method: &'static str) -> MutationCall<'static> {
    users::call(acme(), method)
}

/// A server, whose jobs end with the test.
async fn server(factory: &InDatabase) -> Arc<Directory> {
    let store = Arc::new(factory.mongo().await.unwrap()).backend();
    let closed = Directory::new(store, Generator::new(Mode::Variable), Limits::default()).closed();
    let directory = Arc::new(closed);
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

/// Registers users until the tenant is refused. Returns the acknowledged ones.
fn register_all(server: Arc<Directory>, first: usize) -> JoinHandle<Vec<LocalityId>> {
    tokio::spawn(async move {
        let (mut ids, begun) = (Vec::new(), Instant::now());
        for n in first.. {
            match register(&server, n).await {
                Ok(id) => ids.push(id),
                Err(Error::TenantNotFound) => break,
                Err(error) => println!("{error}"),
            }
            assert!(begun.elapsed() < TIMEOUT, "the tenant is never refused");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ids
    })
}

/// Waits until a server registers a user.
async fn until_registered(server: &Directory, n: usize) -> LocalityId {
    let begun = Instant::now();
    loop {
        match register(server, n).await {
            Ok(id) => return id,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn until_gone(server: &Directory) {
    let begun = Instant::now();
    while server.tenant(&acme()).await.is_ok() {
        assert!(begun.elapsed() < TIMEOUT, "the tenant stays");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
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

async fn database(factory: &InDatabase) -> Database {
    servers::one_member().await.client().await.database(factory.name().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn users_registered_during_a_deletion_are_purged() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (one, other) = (server(&factory).await, server(&factory).await);
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
    until_gone(&one).await;
    assert_eq!(left(&database(&factory).await).await, [0, 0, 0]);
    for server in [&one, &other] {
        assert!(matches!(register(server, 0).await, Err(Error::TenantNotFound)));
    }
}

/// The other server has not seen the mark yet: its new user keeps the tenant.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_user_stops_the_deletion_of_an_empty_tenant() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (one, other) = (server(&factory).await, server(&factory).await);
    let late = loop {
        make(&one).await;
        // This makes the other server cache the tenant for some seconds.
        let id = until_registered(&other, 0).await;
        other.purge(call("PurgeUser"), &id.to_string()).await.unwrap();
        one.delete_tenant(call("DeleteTenant"), false).await.unwrap();
        match register(&other, 1).await {
            Ok(late) => break late,
            // On a busy machine, the other server may have read the mark.
            Err(error) => assert!(matches!(error, Error::TenantNotFound), "{error:?}"),
        }
        until_gone(&one).await;
    };
    let begun = Instant::now();
    while one.tenant(&acme()).await.unwrap().deletion.is_some() {
        assert!(begun.elapsed() < TIMEOUT, "the mark stays");
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
    until_registered(&one, 2).await;
}
