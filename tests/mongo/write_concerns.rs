//! Writes whose replies report success and a write concern error: a failover may undo them, so that
//! a step with one has failed. And steps that find other documents than they have read.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use polynym_directory::{
    Error, Histories, Mutation, Mutations, Policies, Shortening, Tenant, Timestamp, Update,
    UserChange,
};
use polynym_mongodb::{InitOptions, Mongo, OpenError, Options, Supported, init, upgrade_to};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::golden::new_store;
use super::servers::{Layout, ReplicaSet};
use crate::support::golden::later_rules;
use crate::support::users;

/// The next such command on a collection has an effect, and a reply with a write concern error.
async fn fail_once(set: &ReplicaSet, command: &str, namespace: &str) {
    let concern = doc! { "code": 91, "codeName": "ShutdownInProgress", "errmsg": "injected" };
    let data = doc! {
        "failCommands": [command], "namespace": namespace, "writeConcernError": concern,
    };
    let point = doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data };
    set.members[0].admin(point).await.unwrap();
}

async fn upgrade(uri: &str, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    upgrade_to(uri, Supported::PRESENT.schema, later_rules(), progress).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_an_upgrade_fails_with_its_write_concern() {
    let set = ReplicaSet::start(Layout::default()).await;
    let (_, uri) = new_store(&set, "concern_upgrade").await;
    let old = Mongo::open(&uri, Options::default()).await.unwrap();
    old.mutate(users::creation(1)).await.unwrap();
    old.close().await;
    fail_once(&set, "update", "concern_upgrade.meta").await;
    let failed = upgrade(&uri, &|_| {}).await.expect_err("a step may be undone");
    assert!(failed.to_string().contains("91"), "{failed}");
    // Here no failover undoes it.
    sleep(Duration::from_secs(1)).await;
    upgrade(&uri, &|_| {}).await.unwrap();
    let supported = Supported { rules: later_rules().version(), ..Supported::PRESENT };
    let store = Mongo::open_supporting(&uri, Options::default(), supported).await.unwrap();
    assert!(users::look_up(&store, 1).await.unwrap());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_ends_if_others_change_the_versions() {
    let set = super::servers::one_member().await;
    let (database, uri) = new_store(set, "concern_versions").await;
    let old = Mongo::open(&uri, Options::default()).await.unwrap();
    old.mutate(users::creation(1)).await.unwrap();
    old.close().await;
    // The epoch rises between the read of the versions and the step that changes them.
    let meta = database.collection::<Document>("meta");
    let change = |line: &str| {
        if line.contains("can be moved") {
            let raised = meta.update_one(doc! { "_id": "schema" }, doc! { "$inc": { "e": 1 } });
            let raised = block_in_place(|| Handle::current().block_on(raised.into_future()));
            assert_eq!(raised.unwrap().modified_count, 1);
        }
    };
    let failed = upgrade(&uri, &change).await.expect_err("it goes on");
    assert!(failed.to_string().contains("run this again"), "{failed}");
    upgrade(&uri, &|_| {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_an_init_fails_or_is_repeated_with_its_write_concern() {
    let set = ReplicaSet::start(Layout::default()).await;
    let made = async |command: &str| {
        let status = set.members[0].admin(doc! { "serverStatus": 1 }).await.unwrap();
        let commands = status.get_document("metrics").unwrap().get_document("commands").unwrap();
        commands.get_document(command).unwrap().get_i64("total").unwrap()
    };
    let mut sent = Vec::new();
    // The first commands on a server also create indexes of its own.
    for name in ["concern_first", "concern_sound", "concern_init"] {
        if name == "concern_init" {
            fail_once(&set, "create", "concern_init.users").await;
            let failed = init(&set.uri(name, ""), &InitOptions::default(), &|_| {}).await;
            let failed = failed.expect_err("a collection may be undone");
            assert!(failed.to_string().contains("ShutdownInProgress (91)"), "{failed}");
            fail_once(&set, "createIndexes", "concern_init.users").await;
        }
        let before = made("createIndexes").await;
        init(&set.uri(name, ""), &InitOptions::default(), &|_| {}).await.unwrap();
        sent.push(made("createIndexes").await - before);
    }
    assert_eq!(sent[2], sent[1] + 1, "a step that may be undone is repeated");
}

/// A mutation whose events are kept for 400 days.
fn kept(change: UserChange) -> Mutation {
    let policies = Policies { holds: [].into(), ..Policies::default() }.into();
    Mutation { now: Timestamp::now().into(), policies, ..users::mutation(users::id(1), change) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shortened_history_is_repeated_until_its_dates_are_safe() {
    let set = ReplicaSet::start(Layout::default()).await;
    let uri = set.uri("concern_dates", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    store.mutate(users::creation(1)).await.unwrap();
    for n in 0..20 {
        let update = Update::from_mask(None, format!("User {n}"), [].into()).unwrap();
        store.mutate(kept(UserChange::Update(update))).await.unwrap();
    }
    store.mutate(kept(UserChange::Unlink(users::email(1)))).await.unwrap();

    let by = Shortening { retention: Duration::from_secs(86_400), now: Timestamp::now() };
    let mut cursor = None;
    for collection in ["journal", "ended"] {
        fail_once(&set, "update", &format!("concern_dates.{collection}")).await;
        let failed = store.shorten_history(&Tenant::DEFAULT, by, cursor.clone()).await;
        assert!(matches!(failed, Err(Error::Unavailable(_))), "{collection}: {failed:?}");
        let shortened = store.shorten_history(&Tenant::DEFAULT, by, cursor).await.unwrap();
        cursor = shortened.next;
        if collection == "journal" {
            // The next part of the users is empty.
            cursor = store.shorten_history(&Tenant::DEFAULT, by, cursor).await.unwrap().next;
        }
    }
    store.close().await;
}
