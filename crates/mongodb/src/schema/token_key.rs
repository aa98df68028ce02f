//! The key of tokens, which all servers of the store share.

use mongodb::Database;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use mongodb::options::WriteConcern;

use crate::client::error::OpenError;
use crate::schema::fields::{ID, META, META_TOKEN_KEY, SCHEMA};
use crate::schema::versions::read;
use polynym_directory::tokens::key::TokenKey;

/// The key of tokens. Creates one if the store has none.
///
/// # Errors
/// [`OpenError`] of the server.
pub async fn token_key(database: &Database) -> Result<TokenKey, OpenError> {
    if let Some(key) = stored(database).await? {
        return Ok(key);
    }
    let new = TokenKey::random().map_err(|error| OpenError::Failed(error.to_string()))?;
    let key = Binary { subtype: BinarySubtype::Generic, bytes: new.as_bytes().to_vec() };
    // Another server may have created one since.
    let absent = doc! { ID: SCHEMA, META_TOKEN_KEY: { "$exists": false } };
    let update = doc! { "$set": { META_TOKEN_KEY: key } };
    let meta = database.collection::<Document>(META);
    meta.update_one(absent, update).write_concern(WriteConcern::majority()).await?;
    let stored = stored(database).await?;
    stored.ok_or_else(|| OpenError::Failed(format!("{META} has no key of tokens")))
}

async fn stored(database: &Database) -> Result<Option<TokenKey>, OpenError> {
    let document = read(database).await?;
    let key =
        document.as_ref().and_then(|document| document.get_binary_generic(META_TOKEN_KEY).ok());
    Ok(key.and_then(|key| key.as_slice().try_into().ok()).map(TokenKey::new))
}
