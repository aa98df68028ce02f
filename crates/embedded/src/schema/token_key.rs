//! The key of tokens, in four numbers, because the table of versions has numbers.

use redb::{Database, ReadableDatabase, Table};

use crate::schema::tables::{META, TOKEN_KEY};
use polynym_directory::{Error, TokenKey};

/// The key of tokens. Creates one if the store has none. If it cannot be stored, as on a full disk,
/// it lasts until the store is closed.
///
/// # Errors
/// [`Error::Internal`] if the operating system has no random bytes.
pub fn token_key(database: &Database) -> Result<TokenKey, Error> {
    if let Ok(Some(key)) = read(database) {
        return Ok(key);
    }
    let key = TokenKey::random()?;
    if let Err(error) = write(database, &key) {
        tracing::warn!(%error, "cannot store the key of tokens: they end with this process");
    }
    Ok(key)
}

fn read(database: &Database) -> Result<Option<TokenKey>, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let mut bytes = [0; TokenKey::BYTES];
    for (part, name) in bytes.chunks_exact_mut(8).zip(TOKEN_KEY) {
        let Some(number) = meta.get(name)? else { return Ok(None) };
        part.copy_from_slice(&number.value().to_le_bytes());
    }
    Ok(Some(TokenKey::new(bytes)))
}

fn write(database: &Database, key: &TokenKey) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    insert(&mut transaction.open_table(META)?, key)?;
    Ok(transaction.commit()?)
}

/// Writes the key of tokens of a store.
pub fn insert(meta: &mut Table<'_, &'static str, u64>, key: &TokenKey) -> Result<(), redb::Error> {
    for (part, name) in key.as_bytes().chunks_exact(8).zip(TOKEN_KEY) {
        let number = part.try_into().map_or(0, u64::from_le_bytes);
        meta.insert(name, number)?;
    }
    Ok(())
}
