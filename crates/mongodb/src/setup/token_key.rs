//! The key of tokens, which all servers of the store share.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, doc};

use crate::client::error::{Fault, OpenError};
use crate::command::write::WriteCommand;
use crate::schema::fields::{ID, META, META_TOKEN_KEY, SCHEMA};
use crate::schema::versions::read;
use polynym_directory::TokenKey;

/// The time limit of the write of a new key.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

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
    let create = WriteCommand::update(META, &absent, &update).map_err(failed)?;
    create.run(database, WRITE_TIMEOUT).await.map_err(failed)?;
    let stored = stored(database).await?;
    stored.ok_or_else(|| OpenError::Failed(format!("{META} has no key of tokens")))
}

/// The key of tokens, if the store has one.
///
/// # Errors
/// [`OpenError`] of the server.
pub async fn stored(database: &Database) -> Result<Option<TokenKey>, OpenError> {
    let document = read(database).await?;
    let key =
        document.as_ref().and_then(|document| document.get_binary_generic(META_TOKEN_KEY).ok());
    Ok(key.and_then(|key| key.as_slice().try_into().ok()).map(TokenKey::new))
}

fn failed(fault: Fault) -> OpenError {
    OpenError::Failed(fault.to_string())
}
