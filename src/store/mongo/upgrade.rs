//! `store upgrade`: takes a store to the newest versions, while servers go on. First its document
//! of versions is changed: programs that support the new versions write in them from when they have
//! read it. Then the validators are, and MongoDB refuses what others still write. Each step can be
//! taken again, so an upgrade that was broken off is finished by the next.

use mongodb::Database;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};

use super::connect::{connect, disconnect};
use super::error::OpenError;
use super::init::{InitOptions, complete};
use super::schema::META;
use super::versions::{Supported, Versions};

/// Takes the store in the database that `uri` names to the versions of this program, and tells
/// `progress` of each step in a sentence.
///
/// # Errors
/// [`OpenError`]. Where a step fails, another run goes on from there.
pub async fn upgrade(uri: &str, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    let database = connect(uri).await?;
    let upgraded = upgrade_in(&database, progress).await;
    disconnect(&database).await;
    upgraded
}

async fn upgrade_in(database: &Database, progress: &(dyn Fn(&str) + Sync)) -> Result<(), OpenError> {
    let options = InitOptions { spread: false };
    let newest = Supported::PRESENT;
    let mut versions = Versions::supported_in(database, newest).await?;
    // What the store lacks in its old versions is made first: servers that support the new ones
    // rely on it.
    complete(database, versions, &options, progress).await?;
    if versions.schema < newest.schema {
        let next = Versions { schema: newest.schema, epoch: versions.epoch + 1, ..versions };
        raise(database, versions, next).await?;
        // Another run may have been faster.
        versions = Versions::supported_in(database, newest).await?;
        progress(&format!("schema version {}: programs that support it use it from now on", versions.schema));
        complete(database, versions, &options, progress).await?;
    }
    let (name, Versions { schema, rules, .. }) = (database.name(), versions);
    progress(&format!("database {name} is a store of schema version {schema} and rules version {rules} now"));
    Ok(())
}

/// Changes the versions, where they are still `from`.
async fn raise(database: &Database, from: Versions, to: Versions) -> Result<(), OpenError> {
    let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
    let meta = database.collection::<Document>(META);
    meta.update_one(from.document(), doc! { "$set": to.document() }).write_concern(majority).await?;
    Ok(())
}
