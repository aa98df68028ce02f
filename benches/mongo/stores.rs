//! Stores as `polynym store init` makes them, in databases of their own.

use std::sync::Arc;

use mongodb::bson::{Bson, Document, doc};
use polynym::directory::Store;
use polynym::locality::split_points;
use polynym::store::mongo::{Mongo, Options};

use crate::place::Place;
use crate::{Result, documents};

/// The store's collections, and the one that it is compared with.
pub const USERS: &str = "users";
pub const IDENTITIES: &str = "identities";
pub const INSIDE: &str = "inside";
const REQUESTS: &str = "requests";

/// Makes a store, confined to `shards` where any are given, and opens it.
pub async fn open(place: &Place, database: &str, shards: &[String]) -> Result<Arc<dyn Store>> {
    let meta = place.database(database).collection::<Document>("meta");
    meta.insert_one(doc! { "_id": "schema", "v": 1i64 }).await?;
    if shards.is_empty() {
        for collection in [USERS, IDENTITIES, REQUESTS] {
            place.database(database).create_collection(collection).await?;
        }
    } else {
        let ids = || split_points(shards.len() * 4).into_iter().map(|id| Bson::from(documents::uuid(id))).collect();
        let keys = ["email,f", "email,l", "handle,", "handle,f", "handle,k", "social,", "social,github/101"];
        let keys = keys.iter().map(|key| Bson::from(format!("default,{key}"))).collect();
        place.spread(database, USERS, ids(), shards).await?;
        place.spread(database, REQUESTS, ids(), shards).await?;
        place.spread(database, IDENTITIES, keys, shards).await?;
    }
    Ok(Arc::new(Mongo::open(&place.uri_of(database), Options::default()).await?))
}
