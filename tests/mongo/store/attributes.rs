//! Attributes with lost names.

use mongodb::bson::{Document, doc};
use polynym_mongodb::{self as mongo, InitOptions, Mongo};

use crate::servers;
use crate::support::scenarios::damaged_attributes::{create, expected, findings};

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
    assert_eq!(findings(&["--mend"], &uri), [expected("unnamed", 1), expected("unnamed", 3)]);
    names.delete_many(doc! {}).await.unwrap();
    assert_eq!(findings(&[], &uri).len(), 4);
}
