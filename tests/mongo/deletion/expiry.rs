//! Expiry if stored users are damaged.

use std::sync::Arc;

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, Document, doc};

use crate::servers::{self, Databases};
use crate::support::expiry::{FAILING, LONG_AGO, failing, prepare, user_1_is_purged};

/// An expired user that cannot be read; of every third, neither can its tenant.
fn damaged(n: usize, id: LocalityId) -> Document {
    let binary = |subtype, bytes: &[u8]| Binary { subtype, bytes: bytes.to_vec() };
    doc! {
        "_id": binary(BinarySubtype::Uuid, id.as_bytes()),
        "r": 0_i64,
        "t": if n.is_multiple_of(3) { "NOT A TENANT" } else { "default" },
        "w": binary(BinarySubtype::Generic, &[0xff; 9]),
        "d": DateTime::from_millis(LONG_AGO),
        "e": 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_users_do_not_block_expiry() {
    let set = servers::one_member().await;
    let factory = Databases::of_set(set, "").factory();
    let store = Arc::new(factory.mongo().await.unwrap());
    prepare(&*store).await;
    let users = set.client().await.database(factory.name().await).collection("users");
    users.insert_many((0..FAILING).map(|n| damaged(n, failing(n)))).await.unwrap();
    user_1_is_purged(store.backend()).await;
}
