//! Events of purges, which are in many ranges, and long histories, which are shortened in pages.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use mongodb::{Collection, Database};
use polynym_directory::{
    Histories, Mutation, Mutations, NewUser, Shortening, Tenant, TenantEventKind, Timestamp,
    UserChange,
};
use polynym_mongodb::Mongo;

use crate::servers::{self, Databases, InDatabase};
use crate::support::users;

/// The purged users: two for each range.
const USERS: usize = 32;
/// Events in one range: more than one page of a shortening.
const EVENTS: u64 = 1_200;
/// The time of the first event: none has expired when MongoDB removes what has.
const START: i64 = 4_102_444_800_000;

async fn opened() -> (InDatabase, Mongo, Database) {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let store = factory.mongo().await.unwrap();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    (factory, store, database)
}

/// The id of a user, whose first digit counts.
fn id(n: usize) -> LocalityId {
    format!("{:x}{n:07x}-0001-b000-0001-000000000000", n % 16).parse().unwrap()
}

fn at(n: usize) -> Timestamp {
    Timestamp::from_millis(START + 1_000 * n as i64)
}

async fn purge(store: &Mongo, n: usize) {
    for change in [UserChange::Create(NewUser::default()), UserChange::Purge] {
        let mutation = Mutation { now: at(n).into(), ..users::mutation(id(n), change) };
        store.mutate(mutation).await.unwrap();
    }
}

fn bytes_of(id: &Bson) -> &[u8] {
    let Bson::Binary(id) = id else { panic!("{id}") };
    &id.bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_purges_are_spread_and_listed_in_order() {
    let (_factory, store, database) = opened().await;
    for n in 0..USERS {
        purge(&store, n).await;
    }
    let journal: Collection<Document> = database.collection("journal");
    let stored: Vec<_> = journal.find(doc! {}).await.unwrap().try_collect().await.unwrap();
    let firsts = stored.iter().map(|one| bytes_of(one.get("_id").unwrap())[0] >> 4);
    assert_eq!(firsts.collect::<BTreeSet<_>>().len(), 16, "the events are in 16 ranges");

    let (mut before, mut listed) = (None, Vec::new());
    loop {
        let page = store.tenant_history(&Tenant::DEFAULT, before, 5).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.sequence);
        listed.extend(page.into_iter().map(|event| match event.kind {
            TenantEventKind::UserPurged(user) => user,
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(listed, (0..USERS).rev().map(id).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_of_several_pages_is_shortened() {
    let (_factory, store, database) = opened().await;
    purge(&store, 0).await;
    let journal: Collection<Document> = database.collection("journal");
    let event = journal.find_one(doc! {}).await.unwrap().unwrap();
    let date = |millis: i64| Bson::DateTime(DateTime::from_millis(millis));
    let prefix = bytes_of(event.get("_id").unwrap())[..16].to_vec();
    let copy = |n: u64| {
        let number = (START as u64 + 60_000 * n) << 20;
        let bytes = [&prefix[..], &number.to_be_bytes()].concat();
        let id = Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes });
        doc! { "_id": id, "e": event.get("e"), "d": date(i64::MAX / 2_000) }
    };
    journal.delete_many(doc! {}).await.unwrap();
    journal.insert_many((0..EVENTS).map(copy)).await.unwrap();

    // Half of the events have expired, and the others will in time.
    let retention = Duration::from_secs(60 * EVENTS / 2);
    let now = Timestamp::from_millis(START + 60_000 * EVENTS as i64);
    let (by, mut cursor) = (Shortening { retention, now }, None);
    loop {
        let shortened = store.shorten_history(&Tenant::DEFAULT, by, cursor).await.unwrap();
        cursor = shortened.next;
        if cursor.is_none() {
            break;
        }
    }
    let order = doc! { "_id": 1 };
    let left: Vec<_> =
        journal.find(doc! {}).sort(order).await.unwrap().try_collect().await.unwrap();
    // An event expires at its time plus the retention: the first that stays is one later.
    assert_eq!(left.len() as u64, EVENTS / 2 - 1);
    for (n, event) in left.iter().enumerate() {
        let time = START + 60_000 * (EVENTS as i64 / 2 + 1 + n as i64);
        assert_eq!(event.get("d"), Some(&date(time + retention.as_millis() as i64)), "event {n}");
    }
}
