//! Damaged histories: events of another user, and former owners that are missing or wrong.

use mongodb::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use polynym_mongodb::{self as mongo, InitOptions, Mongo};

use crate::servers;
use crate::support::scenarios::damaged_histories::{create, expected, findings, key};
use crate::users::id;

#[tokio::test(flavor = "multi_thread")]
async fn inconsistent_histories_are_found_on_mongodb() {
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
