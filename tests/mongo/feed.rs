//! The feed of a store on MongoDB: stored forms of events, damaged users, and streams that end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::Database;
use mongodb::bson::{Binary, Bson, Document, RawDocumentBuf, doc, spec::BinarySubtype};
use polynym_directory::{
    Backend, Error, Event, Mutation, NewUser, ResumeToken, Tenant, UserChange, Value,
};
use polynym_identifier::Rules;
use polynym_mongodb::{Mongo, Options, upgrade_to};

use crate::calls::Client;
use crate::golden::new_store;
use crate::scrape::{free_address, metrics};
use crate::server::Server;
use crate::servers::{self, Databases, InDatabase};
use crate::support::scenarios::watching::{Watching, from, rename};
use crate::users;
use crate::versions::NEXT;

const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(60);
/// A name that no other text contains.
const NAME: &str = "quetzalcoatl";

fn uuid(n: usize) -> Bson {
    let bytes = users::id(n).as_bytes().to_vec();
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })
}

/// The creation of a user with `count` attributes of `bytes` each.
fn with_attributes(n: usize, count: usize, bytes: usize) -> Mutation {
    let attribute = |n| (format!("{NAME} {n}"), Value::String("x".repeat(bytes)));
    let attributes = (0..count).map(attribute).collect::<BTreeMap<_, _>>();
    users::mutation(users::id(n), UserChange::Create(NewUser { attributes, ..NewUser::default() }))
}

/// A store, its database and the position at its end.
async fn store_of(factory: &InDatabase) -> (Backend, Database, ResumeToken) {
    let backend = Arc::new(factory.mongo().await.unwrap()).backend();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let position = backend.feed.position().await.unwrap();
    (backend, database, position)
}

/// The events after a position until one of user `n`, and the position after them.
async fn until(store: &Backend, position: &mut ResumeToken, n: usize) -> Vec<Arc<Event>> {
    let (mut seen, since) = (Vec::new(), Instant::now());
    loop {
        assert!(since.elapsed() < ARRIVAL_TIMEOUT, "{seen:?}");
        let page = store.feed.events(&Tenant::DEFAULT, position, ARRIVAL_TIMEOUT).await.unwrap();
        *position = page.resume_token;
        seen.extend(page.events.into_iter().map(|(event, _)| event));
        if seen.iter().any(|event| event.user == users::id(n)) {
            return seen;
        }
    }
}

fn paths(event: &Event) -> Vec<&str> {
    event.changes.fields.iter().map(|change| change.path.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_repeats_the_names_of_attributes() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (store, database, _) = store_of(&factory).await;
    for (n, count) in [(0, 10), (1, 60)] {
        store.mutations.mutate(with_attributes(n, count, 20)).await.unwrap();
        store.mutations.mutate(users::mutation(users::id(n), UserChange::Disable)).await.unwrap();
    }
    for collection in ["users", "journal"] {
        let all = database.collection::<RawDocumentBuf>(collection);
        let mut found = all.find(doc! {}).await.unwrap();
        let mut count = 0;
        while found.advance().await.unwrap() {
            let bytes = found.current().as_bytes();
            assert!(!bytes.windows(NAME.len()).any(|part| part == NAME.as_bytes()));
            count += 1;
        }
        assert!(count > 0, "{collection} is empty");
    }
    // The events of large users are not in their documents.
    let documents = database.collection::<Document>("users");
    let user = documents.find_one(doc! { "_id": uuid(1) }).await.unwrap().unwrap();
    assert!(user.get_binary_generic("j").unwrap().len() < 200, "{user}");
}

/// Later MongoDB versions may report a replacement as an update.
#[tokio::test(flavor = "multi_thread")]
async fn updates_are_changes_too() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (store, database, mut position) = store_of(&factory).await;
    for n in 0..2 {
        store.mutations.mutate(users::creation(n)).await.unwrap();
    }
    until(&store, &mut position, 1).await;
    let documents = database.collection::<Document>("users");
    let other = documents.find_one(doc! { "_id": uuid(1) }).await.unwrap().unwrap();
    // The revision alone is no event.
    for set in [doc! { "r": 1_000_000_000_000_i64 }, doc! { "j": other.get("j") }] {
        // The tail differs from the former one.
        let change = doc! { "$set": set };
        documents.update_one(doc! { "_id": uuid(0) }, change).await.unwrap();
    }
    let seen = until(&store, &mut position, 0).await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].tenant.as_str(), "default");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_a_deleted_tenant_are_numbers() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (store, database, start) = store_of(&factory).await;
    store.mutations.mutate(with_attributes(0, 2, 10)).await.unwrap();
    // As the deletion of the tenant leaves them.
    let names = database.collection::<Document>("names");
    let gone = doc! { "$set": { "l": 2, "n": [] }, "$unset": { "s": true } };
    assert_eq!(names.update_one(doc! {}, gone).await.unwrap().modified_count, 1);
    let (later, ..) = store_of(&factory).await;
    let seen = until(&later, &mut start.clone(), 0).await;
    assert_eq!(paths(&seen[0]), ["attributes.#0", "attributes.#1"]);
    // Tokens are not used again: a new tenant of this name does not name them.
    later.mutations.mutate(with_attributes(1, 1, 10)).await.unwrap();
    let (later, ..) = store_of(&factory).await;
    let seen = until(&later, &mut start.clone(), 1).await;
    let named = format!("attributes.{NAME} 0");
    assert_eq!(
        seen.iter().flat_map(|event| paths(event)).collect::<Vec<_>>(),
        ["attributes.#0", "attributes.#1", &named]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_collection_ends_watches() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (store, database, start) = store_of(&factory).await;
    let mut position = start.clone();
    store.mutations.mutate(users::creation(0)).await.unwrap();
    until(&store, &mut position, 0).await;
    database.collection::<Document>("users").drop().await.unwrap();
    let since = Instant::now();
    let ended = loop {
        assert!(since.elapsed() < ARRIVAL_TIMEOUT, "the feed does not end");
        match store.feed.events(&Tenant::DEFAULT, &position, Duration::from_secs(1)).await {
            Ok(page) => position = page.resume_token,
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::ResumeExpired), "{ended:?}");
    // New watches begin after it.
    let mut position = store.feed.position().await.unwrap();
    store.mutations.mutate(users::creation(1)).await.unwrap();
    until(&store, &mut position, 1).await;
}

/// Watchers of other users go on.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_change_is_skipped_and_counted() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let uri = factory.uri().await;
    let address = free_address();
    let server = tokio::task::block_in_place(|| {
        Server::start(&["--store", &uri, "--admin-listen", &address.to_string()])
    });
    let mut client = Client::connect(&server.url).await;
    let joe = client.create(Default::default()).await.unwrap();
    let ann = client.create(Default::default()).await.unwrap();
    let mut watching = Watching::begin(&mut client, from("")).await.unwrap();
    let start = watching.token.clone();
    rename(&mut client, &joe.user_id, "Joe").await.unwrap();
    watching.next().await.unwrap();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let documents = database.collection::<Document>("users");
    let found = documents.find_one(doc! { "w": { "$exists": true } }).await.unwrap().unwrap();
    let torn = Binary { subtype: BinarySubtype::Generic, bytes: vec![0xff; 20] };
    let id = doc! { "_id": found.get("_id") };
    let changed = doc! { "$set": { "j": torn } };
    documents.update_one(id, changed).await.unwrap();
    let other = [&joe, &ann].into_iter().find(|user| {
        let Some(Bson::Binary(id)) = found.get("_id") else { panic!("{found}") };
        user.user_id.replace('-', "")
            != id.bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    let other = &other.unwrap().user_id;
    rename(&mut client, other, "Ann").await.unwrap();
    assert_eq!(&watching.next().await.unwrap().user_id, other);
    let mut later = Watching::begin(&mut client, from(&start)).await.unwrap();
    while &later.next().await.unwrap().user_id != other {}
    let text = metrics(address);
    let count = text.lines().find_map(|line| line.strip_prefix("polynym_watch_unreadable_total "));
    assert!(count.is_some_and(|count| count.parse::<u32>().unwrap() >= 1), "{text}");
}

/// This program, and one of the next version.
#[tokio::test(flavor = "multi_thread")]
async fn two_versions_send_events_until_the_upgrade() {
    let (database, uri) = new_store(servers::one_member().await, "feed_versions").await;
    let old = Arc::new(Mongo::open(&uri, Options::default()).await.unwrap()).backend();
    let new = Mongo::open_supporting(&uri, Options::default(), NEXT).await.unwrap();
    let new = Arc::new(new).backend();
    let mut positions = [old.feed.position().await.unwrap(), new.feed.position().await.unwrap()];
    for (n, writer) in [&old, &new].into_iter().enumerate() {
        writer.mutations.mutate(with_attributes(n, 2, 10)).await.unwrap();
        for (reader, position) in [&old, &new].into_iter().zip(&mut positions) {
            let seen = until(reader, position, n).await;
            assert_eq!(
                paths(&seen[seen.len() - 1]),
                [0, 1].map(|n| format!("attributes.{NAME} {n}"))
            );
        }
    }
    let report = |line: &str| println!("{line}");
    upgrade_to(&uri, NEXT.schema, Rules::PRESENT, &report).await.unwrap();
    let rejected = old.mutations.mutate(with_attributes(2, 2, 10)).await;
    assert!(matches!(rejected, Err(Error::Outdated(_))), "{rejected:?}");
    let page = old.feed.events(&Tenant::DEFAULT, &positions[0], Duration::ZERO).await;
    assert!(matches!(page, Err(Error::Outdated(_))), "{page:?}");
    let disabled = users::mutation(users::id(0), UserChange::Disable);
    new.mutations.mutate(disabled).await.unwrap();
    new.mutations.mutate(with_attributes(2, 2, 10)).await.unwrap();
    let seen = until(&new, &mut positions[1], 2).await;
    // Older events in the same tail are not sent again.
    let numbers: Vec<_> = seen.iter().map(|event| (event.user, event.sequence)).collect();
    assert_eq!(numbers, [(users::id(0), 2), (users::id(2), 1)]);
    for n in 0..3 {
        let limit = polynym_directory::stores::PageLimit::unlimited();
        let history = new.histories.history(&Tenant::DEFAULT, users::id(n), None, limit);
        let events = history.await.unwrap().unwrap().events;
        assert_eq!(paths(&events[events.len() - 1]).len(), 2, "{events:?}");
        assert!(paths(&events[events.len() - 1])[0].ends_with(" 0"), "{events:?}");
    }
    let tail = async |n| {
        let users = database.collection::<Document>("users");
        let user = users.find_one(doc! { "_id": uuid(n) }).await.unwrap().unwrap();
        user.get_binary_generic("j").unwrap().clone()
    };
    let has_name = |tail: Vec<u8>| tail.windows(NAME.len()).any(|part| part == NAME.as_bytes());
    assert!(!has_name(tail(1).await) && !has_name(tail(2).await));
}
