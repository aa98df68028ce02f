//! Stores as `polynym store init` makes them, in databases of their own.

use std::sync::Arc;

use polynym::directory::Backend;
use polynym::store::mongo::{InitOptions, Mongo, Options, init};

use crate::Result;
use crate::place::Place;

/// The store's collections, and the one that it is compared with.
pub const USERS: &str = "users";
pub const IDENTITIES: &str = "identities";
pub const INSIDE: &str = "inside";
const REQUESTS: &str = "requests";

/// Makes a store, confined to `shards` where any are given, and opens it.
pub async fn open(place: &Place, database: &str, shards: &[String]) -> Result<Backend> {
    let uri = place.uri_of(database);
    init(&uri, &InitOptions::default(), &|_| {}).await?;
    if !shards.is_empty() {
        for collection in [USERS, IDENTITIES, REQUESTS] {
            place.confine(database, collection, shards).await?;
        }
    }
    Ok(Arc::new(Mongo::open(&uri, Options::default()).await?).backend())
}
