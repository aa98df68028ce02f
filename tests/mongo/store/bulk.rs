//! Bulk changes on MongoDB.

use std::time::Duration;

use mongodb::bson::{Binary, Bson, DateTime, Document, doc, spec::BinarySubtype};
use polynym_directory::{
    BulkChange, BulkChanges, BulkList, Mutations, PolicyUpdate, Tenant, TenantChange, Timestamp,
};
use polynym_mongodb::{InitOptions, Mongo, Options, init};

use super::database;
use crate::servers;
use crate::support::scenarios::bulk::killed_servers_lose_and_repeat_nothing;
use crate::support::scenarios::store_command::findings;
use crate::support::users;

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_lose_no_part_of_a_bulk_change() {
    let uri = servers::one_member().await.uri("bulk_killed", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    killed_servers_lose_and_repeat_nothing(&uri).await;
}

/// A document of a bulk change, under this state.
pub fn bulk_document(change: &BulkChange, is_running: bool) -> Document {
    let wire = Binary { subtype: BinarySubtype::Generic, bytes: change.encode() };
    doc! {
        "_id": format!("{}/{}", change.tenant, change.id),
        "t": change.tenant.as_str(),
        "r": 7_i64,
        "d": DateTime::from_millis(change.due_time().as_millis()),
        "w": wire,
        "a": is_running,
    }
}

/// Bulk changes that cannot be read, that servers do not find, and of a tenant that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_bulk_changes_are_found_and_repaired() {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri("verify_bulk");
    init(&uri, &InitOptions { spread: false }, &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    let set = users::tenant_mutation(TenantChange::Set(PolicyUpdate::default()));
    store.mutate(set).await.unwrap();
    store.mutate(users::bulk_start("sound")).await.unwrap();
    let [gone, other] = ["gone", "other"].map(|name| Tenant::parse(name).unwrap());
    let own = |id: &str| bulk_document(&users::bulk_change(id), true);
    let with = |id: &str, field: &str, value: Bson| {
        let mut document = own(id);
        document.insert(field, value);
        document
    };
    let mut lost = own("lost");
    lost.remove("d");
    let misplaced = BulkChange { tenant: other, ..users::bulk_change("misplaced") };
    let misplaced = with("misplaced", "w", bulk_document(&misplaced, true).remove("w").unwrap());
    let early = Bson::DateTime(DateTime::from_millis(0));
    let garbage = Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![255; 9] });
    let mut unreadable = with("broken", "w", garbage);
    unreadable.insert("d", early.clone());
    let list = Some(BulkList::new(&[users::id(0)]));
    let id = Binary { subtype: BinarySubtype::Generic, bytes: vec![0; 16] };
    let documents = [
        bulk_document(&BulkChange { list, ..users::bulk_change("short") }, true),
        doc! { "_id": "!default/none/00000000", "t": "default", "r": 0_i64, "l": id },
        lost,
        with("early", "d", early),
        with("moved", "t", "other".into()),
        bulk_document(&users::bulk_change("ended"), false),
        unreadable,
        misplaced,
        bulk_document(&BulkChange { tenant: gone, ..users::bulk_change("orphan") }, true),
    ];
    let bulk = database(&uri).await.collection::<Document>("bulk");
    bulk.insert_many(documents).bypass_document_validation(true).await.unwrap();

    // The first due one cannot be read.
    let now = Timestamp::now().plus(Duration::from_secs(60));
    let due = store.due_bulk_changes(now, 1).await.unwrap();
    let due: Vec<_> = due.into_iter().map(|change| change.key).collect();
    assert_eq!(due, [(Tenant::DEFAULT, "early".to_owned())]);
    let mut listed = store.bulk_changes(&Tenant::DEFAULT).await.unwrap();
    listed.sort_by(|one, other| one.id.cmp(&other.id));
    let listed: Vec<_> = listed.iter().map(|change| &*change.id).collect();
    assert_eq!(listed, ["early", "ended", "lost", "moved", "short", "sound"]);

    let words = |arguments: &[&str]| {
        let found = findings(arguments, &uri).into_iter().map(|(word, _)| word);
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        found
    };
    let mut expected = vec!["lost_bulk_users", "stray_bulk_users", "tenantless_bulk"];
    expected.extend(["unreadable_bulk"; 2]);
    expected.extend(["unscheduled_bulk"; 4]);
    assert_eq!(words(&[]), expected);
    assert_eq!(words(&["--repair"]), expected);
    assert_eq!(words(&[]), ["lost_bulk_users", "unreadable_bulk", "unreadable_bulk"]);
    let due = store.due_bulk_changes(now, 10).await.unwrap();
    let mut due: Vec<_> = due.into_iter().map(|change| change.key).collect();
    due.sort();
    let due: Vec<_> = due.iter().map(|(tenant, id)| (tenant.as_str(), &**id)).collect();
    let repaired = ["early", "ended", "lost", "moved", "short", "sound"].map(|id| ("default", id));
    assert_eq!(due, repaired);
}
