//! Single unreadable documents, and users so large that few fit into an answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use polynym_directory::{
    ANSWER_BYTES, Consistency, LookUps, Mutations, Resolved, Tenant, UserChange, View,
};
use polynym_identifier::IdentityKey;
use polynym_layers::coalesce::Coalesced;
use polynym_mongodb::{InitOptions, Mongo, init};

use crate::servers::{self, Databases, Layout, Process, ReplicaSet};
use crate::support::damaged::{CLAIM, TORN, USER, USERS, fails_alone};
use crate::support::scenarios::unreadable::is_passed;
use crate::users;

/// The number of large users: 26 MB.
const LARGE: usize = 64;
/// The maximum bytes read for one answer: a reply of MongoDB and one full answer.
const READ_LIMIT: i64 = (16 << 20) + (8 << 20);

fn uuid(id: LocalityId) -> Binary {
    Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_document_affects_no_other() {
    let set = servers::one_member().await;
    let factory = Databases::of_set(set, "").factory();
    let store = factory.mongo().await.unwrap();
    for n in 0..USERS {
        store.mutate(users::creation(n)).await.unwrap();
    }
    let database = set.client().await.database(factory.name().await);
    let put = async |name: &str, document: Document| {
        let collection = database.collection::<Document>(name);
        let filter = doc! { "_id": document.get("_id").cloned() };
        let replaced = collection
            .replace_one(filter, document)
            .bypass_document_validation(true)
            .await
            .unwrap();
        assert_eq!(replaced.matched_count, 1);
    };
    let ([email, _], [_, handle]) = (users::keys(CLAIM), users::keys(TORN));
    put("identities", doc! { "_id": email.as_str(), "u": "somebody", "v": 1 }).await;
    put("identities", doc! { "_id": handle.as_str(), "u": uuid(users::id(TORN + 1)), "v": 1 })
        .await;
    put("users", doc! { "_id": uuid(users::id(USER)), "name": "somebody" }).await;
    // A server with an owner hint does not read the claim.
    let store = Arc::new(factory.mongo().await.unwrap()).backend();
    fails_alone(store.clone()).await;
    fails_alone(store.layered(|inner| Coalesced::new(inner, Default::default()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_that_cannot_be_read_are_passed() {
    let cluster = servers::three_shards().await;
    let (name, folder) = ("passed_users", tempfile::tempdir().unwrap());
    let uri = cluster.uri(name);
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
    let users = client.database(name).collection::<Document>("users");
    let damage = async |id: &str| {
        let spoil = doc! { "$set": { "w": "somebody" } };
        let update = users.update_one(doc! { "_id": uuid(id.parse().unwrap()) }, spoil);
        let updated = update.bypass_document_validation(true).await.unwrap();
        assert_eq!(updated.modified_count, 1);
    };
    is_passed(&uri, folder.path(), damage).await;
}

/// A purge removes damaged ended ownerships that name its user.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_ended_ownerships_prevent_no_purge() {
    let set = servers::one_member().await;
    let factory = Databases::of_set(set, "").factory();
    let store = factory.mongo().await.unwrap();
    store.mutate(users::creation(1)).await.unwrap();
    let mutation = |change| users::mutation(users::id(1), change);
    store.mutate(mutation(UserChange::Unlink(users::email(1)))).await.unwrap();
    let database = set.client().await.database(factory.name().await);
    let ended = database.collection::<Document>("ended");
    let [email, _] = users::keys(1);
    let damage = doc! { "$set": { "o.0.o": "damaged" } };
    let update = ended.update_one(doc! { "_id": email.as_str() }, damage);
    let updated = update.bypass_document_validation(true).await.unwrap();
    assert_eq!(updated.modified_count, 1);

    store.mutate(mutation(UserChange::Purge)).await.unwrap();
    assert!(!users::look_up(&store, 1).await.unwrap());
    assert_eq!(ended.find_one(doc! { "_id": email.as_str() }).await.unwrap(), None);
}

async fn sent(server: &Process) -> i64 {
    let status = server.admin(doc! { "serverStatus": 1 }).await.unwrap();
    status.get_document("network").unwrap().get_i64("bytesOut").unwrap()
}

/// The found users, and their bytes.
fn read(resolved: &Resolved) -> (Vec<LocalityId>, usize) {
    let found: Vec<_> =
        resolved.found.iter().map(|found| found.as_ref().unwrap().as_ref().unwrap()).collect();
    let ids = found.iter().map(|found| found.user.decode().unwrap().id).collect();
    (ids, found.iter().map(|found| found.user.as_bytes().len()).sum())
}

async fn large() -> (ReplicaSet, Mongo) {
    let set = ReplicaSet::start(Layout::default()).await;
    let uri = set.uri("large", "");
    servers::make(uri.clone()).await;
    let store = Mongo::open(&uri, Default::default()).await.unwrap();
    for n in 0..LARGE {
        store.mutate(users::large_creation(n)).await.unwrap();
    }
    (set, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reads_a_bounded_amount() {
    let (set, store) = large().await;
    let server = &set.members[0];
    let ids: Vec<_> = (0..LARGE).map(users::id).collect();
    let keys: Vec<IdentityKey> = (0..LARGE).map(|n| users::keys(n)[1].clone()).collect();
    for consistency in [Consistency::Latest, Consistency::Linearizable] {
        let mut found = Vec::new();
        while found.len() < LARGE {
            let before = sent(server).await;
            let resolved = store
                .resolve(&keys[found.len()..], consistency, View::Full, Duration::ZERO)
                .await
                .unwrap();
            let taken = sent(server).await - before;
            assert!(taken < READ_LIMIT, "{consistency:?}: {taken} bytes");
            let (next, size) = read(&resolved);
            assert!(size < ANSWER_BYTES + (16 << 19), "{size} bytes");
            assert!(
                size > ANSWER_BYTES || next.len() + found.len() == LARGE,
                "an answer of {size} bytes"
            );
            found.extend(next);
        }
        assert_eq!(found, ids);
    }
    let mut found = 0;
    while found < LARGE {
        let before = sent(server).await;
        let users =
            users::all(store.get(&Tenant::DEFAULT, &ids[found..], View::Full).await.unwrap());
        let taken = sent(server).await - before;
        assert!(taken < READ_LIMIT, "{taken} bytes");
        assert!(users.iter().all(Option::is_some));
        found += users.len();
    }
    together(store, &keys, &ids).await;
}

/// Callers that share calls get complete answers, even if these take several calls.
async fn together(mongo: Mongo, keys: &[IdentityKey], ids: &[LocalityId]) {
    let store = Arc::new(Coalesced::new(Arc::new(mongo), Default::default()));
    let callers = keys.chunks(4).map(|keys| {
        let (store, keys) = (store.clone(), keys.to_vec());
        tokio::spawn(async move {
            store.resolve(&keys, Consistency::Latest, View::Full, Duration::ZERO).await
        })
    });
    for (outcome, ids) in join_all(callers).await.into_iter().zip(ids.chunks(4)) {
        assert_eq!(read(&outcome.unwrap().unwrap()).0, ids);
    }
    let (found, size) =
        read(&store.resolve(keys, Consistency::Latest, View::Full, Duration::ZERO).await.unwrap());
    assert!(found.len() < LARGE && size < ANSWER_BYTES + (1 << 20), "{size} bytes");
}

/// A purge removes damaged events, too.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_events_prevent_no_purge() {
    let set = servers::one_member().await;
    let factory = Databases::of_set(set, "").factory();
    let store = factory.mongo().await.unwrap();
    store.mutate(users::creation(1)).await.unwrap();
    let mutation = |change| users::mutation(users::id(1), change);
    for _ in 0..4 {
        store.mutate(mutation(UserChange::Disable)).await.unwrap();
        store.mutate(mutation(UserChange::Enable)).await.unwrap();
    }
    let database = set.client().await.database(factory.name().await);
    let journal = database.collection::<Document>("journal");
    let update = journal.update_many(doc! {}, doc! { "$set": { "e": "damaged" } });
    let updated = update.bypass_document_validation(true).await.unwrap();
    assert_eq!(updated.modified_count, 1, "nine events do not fit into a user");

    store.mutate(mutation(UserChange::Purge)).await.unwrap();
    assert!(!users::look_up(&store, 1).await.unwrap());
    assert_eq!(journal.find_one(doc! { "e": "damaged" }).await.unwrap(), None);
}
