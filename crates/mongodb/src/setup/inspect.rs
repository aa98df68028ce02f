//! The inspection of a database: whether it is a store, and which parts are missing.

use mongodb::Database;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;

use crate::client::error::OpenError;
use crate::command::run::{first_batch, listing};
use crate::schema::bson::number;
use crate::schema::fields::{BULK, EPOCH, ID, META, USAGE};
use crate::schema::versions::FIRST_EPOCH;
use crate::setup::cluster::{Cluster, STEP_TIMEOUT};
use crate::setup::validators::{
    CLUSTERED_INDEX, COLLECTIONS, by_order, indexes, is_clustered, is_optional, is_shard_key,
    level, shard_key, validator,
};

/// The state of one collection of a store.
pub struct CollectionState {
    pub name: &'static str,
    /// Its listing by the server; `None` if it does not exist.
    listed: Option<Document>,
    /// Whether it has documents.
    pub is_used: bool,
    /// The shard key.
    pub key: Option<Document>,
    /// Its indexes, without that of `_id`.
    indexes: Vec<Document>,
}

/// Inspects each collection of the store.
pub async fn inspect(
    database: &Database,
    cluster: Option<&Cluster>,
) -> Result<Vec<CollectionState>, DriverError> {
    let mut found = Vec::new();
    for name in COLLECTIONS {
        found.push(inspect_collection(database, cluster, name).await?);
    }
    Ok(found)
}

async fn inspect_collection(
    database: &Database,
    cluster: Option<&Cluster>,
    name: &'static str,
) -> Result<CollectionState, DriverError> {
    let mut found = CollectionState {
        name,
        listed: listing(database, name, STEP_TIMEOUT).await?,
        is_used: false,
        key: None,
        indexes: Vec::new(),
    };
    if found.listed.is_none() {
        return Ok(found);
    }

    let documents = database.collection::<RawDocumentBuf>(name);
    let any = documents.find_one(doc! {}).projection(doc! { ID: 1 }).max_time(STEP_TIMEOUT);
    found.is_used = any.await?.is_some();
    if let Some(cluster) = cluster {
        found.key = cluster.key_of(name).await?;
    }

    if found.is_plain() && found.key.as_ref().is_none_or(|key| is_shard_key(name, key)) {
        let list = doc! { "listIndexes": name };
        found.indexes = first_batch(database, list, STEP_TIMEOUT).await?;
        found.indexes.retain(|index| index.get_document("key").ok() != Some(&by_order()));
    }
    Ok(found)
}

/// Why the existing collections cannot become a store, if they cannot. `is_store`: whether the
/// database is marked as a store.
pub fn obstacle(found: &[CollectionState], is_store: bool) -> Option<String> {
    found.iter().find_map(|found| found.obstacle(is_store))
}

/// Checks that the store is complete, as far as a user without administrator's privileges can see:
/// only administrators can read how it is sharded.
///
/// # Errors
/// [`OpenError::Foreign`], [`OpenError::Incomplete`], or an error of the server.
pub async fn check_complete(database: &Database) -> Result<(), OpenError> {
    let found = inspect(database, None).await?;
    let name = || database.name().to_owned();
    if let Some(what) = obstacle(&found, true) {
        return Err(OpenError::Foreign { database: name(), what });
    }

    // Counters and bulk changes are optional. An upgrade may be about to raise the epoch in the
    // validators.
    let used = found.iter().filter(|found| !matches!(found.name, USAGE | BULK));
    let missing: Vec<_> = used.flat_map(|found| found.missing(false, FIRST_EPOCH)).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(OpenError::Incomplete { database: name(), what: missing.join(", ") })
    }
}

impl CollectionState {
    fn obstacle(&self, is_store: bool) -> Option<String> {
        let name = self.name;
        if self.exists() && !self.is_plain() {
            return Some(format!("{name} is not an ordinary collection"));
        }

        if self.is_used && !is_store {
            return Some(format!(
                "{name} holds documents, and nothing in {META} says that this program made it"
            ));
        }
        if self.exists() && is_clustered(name) && !self.has_option(CLUSTERED_INDEX) {
            return Some(format!("{name} is not clustered by {ID}"));
        }
        let key = self.key.as_ref().filter(|key| !is_shard_key(name, key))?;
        Some(format!("{name} is sharded on {key} in place of {}", shard_key(name)))
    }

    /// Whether it is not a view, not capped, and compares keys byte by byte.
    fn is_plain(&self) -> bool {
        let kind = self.listed.as_ref().and_then(|listed| listed.get_str("type").ok());
        kind == Some("collection") && !self.has_option("capped") && !self.has_option("collation")
    }

    fn has_option(&self, name: &str) -> bool {
        self.options().is_some_and(|options| options.contains_key(name))
    }

    fn options(&self) -> Option<&Document> {
        self.listed.as_ref()?.get_document("options").ok()
    }

    pub const fn exists(&self) -> bool {
        self.listed.is_some()
    }

    /// Whether its documents can be counted.
    pub fn is_readable(&self) -> bool {
        self.exists() && self.is_plain()
    }

    /// Whether its validator checks writes in this epoch. That of a newer program may check more.
    pub fn is_checked(&self, epoch: i32) -> bool {
        let Some(options) = self.options() else { return false };
        let own = options.get_document("validator").ok();
        let level = level(self.name)
            .is_none_or(|level| options.get_str("validationLevel").ok() == Some(level));
        level && own.is_some_and(|own| checks(own, &validator(self.name, epoch)))
    }

    /// The indexes that are missing or differ.
    pub fn missing_indexes(&self) -> Vec<Document> {
        let exists = |wanted: &Document| {
            self.index_on(wanted).is_some_and(|own| seconds(own) == seconds(wanted))
        };
        indexes(self.name).into_iter().filter(|wanted| !exists(wanted)).collect()
    }

    /// Its index on the same fields.
    pub fn index_on(&self, wanted: &Document) -> Option<&Document> {
        self.indexes.iter().find(|own| own.get("key") == wanted.get("key"))
    }

    /// The missing parts of the collection, each as text.
    pub fn missing(&self, on_cluster: bool, epoch: i32) -> Vec<String> {
        let name = self.name;
        if !self.exists() {
            return if is_optional(name) { Vec::new() } else { vec![format!("collection {name}")] };
        }

        let mut missing = Vec::new();
        if !self.is_checked(epoch) {
            missing.push(format!("the validator of {name}"));
        }

        if !self.missing_indexes().is_empty() {
            missing.push(format!("an index of {name}"));
        }
        if on_cluster && self.key.is_none() {
            missing.push(format!("the sharding of {name}"));
        }

        missing
    }
}

/// Whether a validator requires all that `wanted` requires, and allows unknown fields.
fn checks(own: &Document, wanted: &Document) -> bool {
    const SCHEMA: &str = "$jsonSchema";
    let (Ok(own), Ok(wanted)) = (own.get_document(SCHEMA), wanted.get_document(SCHEMA)) else {
        return false;
    };

    wanted.iter().all(|(name, wanted)| match (own.get(name), wanted) {
        (Some(Bson::Array(own)), Bson::Array(wanted)) => {
            wanted.iter().all(|field| own.contains(field))
        }
        (Some(Bson::Document(own)), Bson::Document(wanted)) => {
            wanted.iter().all(|(field, wanted)| {
                own.get(field).is_some_and(|own| is_as_strict(field, own, wanted))
            })
        }
        (own, wanted) => own == Some(wanted),
    }) && own.keys().all(|name| wanted.contains_key(name))
}

/// Whether a validator's rule for a field is the wanted one, or requires a later epoch.
fn is_as_strict(field: &str, own: &Bson, wanted: &Bson) -> bool {
    let least = |of: &Bson| of.as_document().and_then(|of| number(of.get("minimum")?));
    own == wanted || (field == EPOCH && least(own) >= least(wanted))
}

/// The seconds after which the index expires a document.
fn seconds(index: &Document) -> Option<i64> {
    index.get("expireAfterSeconds").and_then(number)
}
