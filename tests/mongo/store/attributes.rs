//! The names of attributes: reads of them, and lost ones.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use polynym_directory::{
    Consistency, LookUps, Mutation, Mutations, NewUser, Resolved, Tenant, UserChange, Value, View,
};
use polynym_identifier::IdentityKey;
use polynym_mongodb::{self as mongo, InitOptions, Mongo};
use polynym_proto::v1::{self, attribute_value::Kind};
use tokio::task::spawn_blocking;

use crate::calls::{Client, handle, identity};
use crate::scrape::{free_address, metrics};
use crate::server::Server;
use crate::support::scenarios::damaged_attributes::{create, expected, findings};
use crate::{servers, users};

/// A new server on a store without owner hints: its client, and the address of its metrics.
async fn cold_server(uri: &str) -> (Server, Client, std::net::SocketAddr) {
    let (uri, admin) = (uri.to_owned(), free_address());
    let start = move || {
        let listen = admin.to_string();
        Server::start(&["--store", &uri, "--hints", "0", "--admin-listen", &listen])
    };
    let server = spawn_blocking(start).await.unwrap();
    let client = Client::connect(&server.url).await;
    (server, client, admin)
}

/// The reads that the metric has counted, and the look-ups.
fn counted_reads(admin: std::net::SocketAddr) -> [f64; 2] {
    let scraped = metrics(admin);
    ["polynym_resolve_reads_sum ", "polynym_resolve_reads_count "].map(|name| {
        let value = scraped.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("{name} is not in\n{scraped}")).parse().unwrap()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metric_of_reads_counts_those_of_names() {
    let factory = servers::Databases::of_set(servers::one_member().await, "").factory();
    let uri = factory.uri().await;
    let (_writer, mut writer, _) = cold_server(&uri).await;
    let level = v1::AttributeValue { kind: Some(Kind::IntValue(1)) };
    for (name, attributes) in [("ada", vec![("level".to_owned(), level)]), ("bob", Vec::new())] {
        let user = v1::User {
            identities: vec![identity(handle(name))],
            attributes: attributes.into_iter().collect(),
            ..Default::default()
        };
        writer.create(user).await.unwrap();
    }

    let (_reader, mut reader, admin) = cold_server(&uri).await;
    let mut sum = 0.0;
    for (n, (name, reads)) in [("bob", 2.0), ("ada", 3.0), ("ada", 2.0)].into_iter().enumerate() {
        let user = reader.resolve(handle(name)).await.unwrap().user.unwrap();
        assert_eq!(user.attributes.len(), usize::from(name == "ada"));
        sum += reads;
        assert_eq!(counted_reads(admin), [sum, n as f64 + 1.0], "look-up {n} of {name}");
    }
}

/// The tenants of the next test.
const TENANTS: usize = 20;

fn tenant(n: usize) -> Tenant {
    Tenant::parse(&format!("tenant{n}")).unwrap()
}

async fn resolve(store: &Mongo, view: View) -> Resolved {
    let keys: Vec<_> =
        (0..TENANTS).map(|n| IdentityKey::new(tenant(n).as_str(), &users::email(n))).collect();
    store.resolve(&keys, Consistency::Latest, view, Duration::ZERO).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_reads_the_names_of_its_tenants_together() {
    let factory = servers::Databases::of_set(servers::one_member().await, "").factory();
    let uri = factory.uri().await;
    let open = || Mongo::open(&uri, mongo::Options { hint_bytes: 0, ..Default::default() });
    let writer = open().await.unwrap();
    for n in 0..TENANTS {
        let identities = vec![users::identity(users::email(n))];
        let attributes = [(format!("level {n}"), Value::Int(1))].into();
        let new = NewUser { identities, attributes, ..NewUser::default() };
        let creation = users::mutation(users::id(n), UserChange::Create(new));
        writer.mutate(Mutation { tenant: tenant(n), ..creation }).await.unwrap();
    }

    let store = open().await.unwrap();
    assert_eq!(resolve(&store, View::Basic).await.reads, 2);
    for reads in [4, 2] {
        let resolved = resolve(&store, View::Full).await;
        assert_eq!(resolved.reads, reads);
        for (n, found) in resolved.found.into_iter().enumerate() {
            let user = found.unwrap().unwrap().user.decode().unwrap();
            assert!(user.attributes.contains_key(&format!("level {n}")), "{user:?}");
        }
    }

    // Damaged names fail the users of their tenant alone.
    let names = super::database(&uri).await.collection::<Document>("names");
    let damage = doc! { "$set": { "n": 1 } };
    let damaged = names.update_one(doc! { "_id": "tenant3,00000000" }, damage);
    damaged.bypass_document_validation(true).await.unwrap();
    let found = resolve(&open().await.unwrap(), View::Full).await.found;
    let failed: Vec<_> = (0..TENANTS).filter(|n| found[*n].is_err()).collect();
    assert_eq!(failed, [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_name_is_found_on_mongodb() {
    let uri = servers::one_member().await.uri("verify_names", "");
    mongo::init(&uri, &InitOptions { spread: false }, &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, mongo::Options::default()).await.unwrap();
    create(&store, 4).await;
    assert_eq!(findings(&[], &uri), []);
    let names = super::database(&uri).await.collection::<Document>("names");
    let shorter = doc! { "$pull": { "n": "level" } };
    assert_eq!(names.update_one(doc! {}, shorter).await.unwrap().modified_count, 1);
    assert_eq!(findings(&["--repair"], &uri), [expected("unnamed", 1), expected("unnamed", 3)]);
    names.delete_many(doc! {}).await.unwrap();
    assert_eq!(findings(&[], &uri).len(), 4);
}
