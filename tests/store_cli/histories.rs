//! Damaged histories: events of another user, and former owners that are missing or wrong.

use std::path::Path;

use mongodb::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use polynym::directory::{Mutations, UserChange};
use polynym::identifier::{Identifier, RawIdentifier};
use polynym::store::embedded::{Embedded, Options};
use polynym::store::mongo::{self, InitOptions, Mongo};
use redb::{ReadableTable, TableDefinition};

use super::{err, json, out, store};
use crate::servers;
use crate::support::database;
use crate::users::{self, id};

const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const ENDED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("ended");

fn key(user: usize) -> String {
    format!("default,handle,user{user}")
}

/// Creates four users, each of which has had a handle and lost it.
async fn create(store: &impl Mutations) {
    for user in 0..4 {
        store.mutate(users::creation(user)).await.unwrap();
        let name = format!("user{user}");
        let handle = Identifier::parse(RawIdentifier::Handle(&name)).unwrap();
        store.mutate(users::mutation(id(user), UserChange::Unlink(handle))).await.unwrap();
    }
}

/// The words and users of the findings.
fn findings(name: &str) -> Vec<(String, String)> {
    let output = store(&["verify", "--mend", "--json"], name);
    let mut lines = json(&output);
    let totals = lines.pop().unwrap_or_else(|| panic!("{}", err(&output)));
    assert_eq!(totals["findings"], lines.len());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut found: Vec<_> =
        lines.iter().map(|line| (text(&line["finding"]), text(&line["user"]))).collect();
    found.sort();
    found
}

fn expected(findings: &[(&str, usize)]) -> Vec<(String, String)> {
    findings.iter().map(|(word, user)| ((*word).to_owned(), id(*user).to_string())).collect()
}

fn change(folder: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let transaction = database(folder).begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_that_do_not_fit_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = (folder.path(), format!("embedded:{}", folder.path().display()));
    create(&Embedded::open(path, Options::default()).unwrap()).await;
    assert_eq!(findings(&name), []);

    change(path, |transaction| {
        let mut ended = transaction.open_table(ENDED).unwrap();
        // Nobody owned the handle of user 1. The handle of user 2 was that of user 3.
        ended.remove(key(1).as_bytes()).unwrap();
        let other = ended.get(key(3).as_bytes()).unwrap().unwrap().value().to_vec();
        ended.insert(key(2).as_bytes(), other.as_slice()).unwrap();
    });
    let wanted = expected(&[("ownership", 1), ("ownership", 2), ("ownership", 3)]);
    assert_eq!(findings(&name), wanted);
    let text = out(&store(&["verify"], &name));
    assert!(!text.contains("user1"), "an identity is shown: {text}");

    change(path, |transaction| {
        let mut events = transaction.open_table(EVENTS).unwrap();
        let other = events.get(2).unwrap().unwrap().value().to_vec();
        events.insert(8, other.as_slice()).unwrap();
    });
    let with_event = [("history", 3), ("ownership", 1), ("ownership", 2)];
    assert_eq!(findings(&name), expected(&with_event));
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_that_do_not_fit_are_found_on_mongodb() {
    let uri = servers::one_member().await.uri("verify_histories", "");
    mongo::init(&uri, &InitOptions { spread: false }, &|_| {}).await.unwrap();
    create(&Mongo::open(&uri, mongo::Options::default()).await.unwrap()).await;
    assert_eq!(findings(&uri), []);

    let collection = async |name: &str| super::database(&uri).await.collection::<Document>(name);
    let ended = collection("ended").await;
    let other = ended.find_one(doc! { "_id": key(3) }).await.unwrap().unwrap();
    ended.delete_one(doc! { "_id": key(1) }).await.unwrap();
    ended
        .update_one(doc! { "_id": key(2) }, doc! { "$set": { "o": other.get("o") } })
        .await
        .unwrap();
    let wanted = [("ownership", 1), ("ownership", 2), ("ownership", 3)];
    assert_eq!(findings(&uri), expected(&wanted));

    let uuid = |n: usize| {
        let bytes = id(n).as_bytes().to_vec();
        doc! { "_id": Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes }) }
    };
    let users = collection("users").await;
    let other = users.find_one(uuid(1)).await.unwrap().unwrap();
    users.update_one(uuid(0), doc! { "$set": { "j": other.get("j") } }).await.unwrap();
    let found = findings(&uri);
    assert!(found.contains(&expected(&[("history", 0)])[0]), "{found:?}");
}
