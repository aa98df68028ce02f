//! The output of `store status` for a folder.

use std::path::{Path, PathBuf};

use redb::{ReadableDatabase, ReadableTableMetadata};

use crate::error::{Fault, OpenError, chain};
use crate::file::opener::Opener;
use crate::last_seen;
use crate::schema::tables::{IDENTITIES, REQUESTS, USERS};
use crate::schema::versions::{NO_VERSION, Versions, versions};
use crate::setup::integrity::CACHE_BYTES;
use crate::version::VERSION;
use polynym_directory::Timestamp;

/// The content of a store's folder.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Status {
    /// The folder.
    pub folder: PathBuf,
    /// The version of what the file holds.
    pub schema_version: u64,
    /// The version of the rules of normalisation.
    pub rules_version: u32,
    /// Whether `store upgrade` takes it to a newer version.
    pub can_be_upgraded: bool,
    /// The size of the file.
    pub file_bytes: u64,
    /// The number of users.
    pub users: u64,
    /// The number of claims.
    pub identities: u64,
    /// The number of remembered requests.
    pub requests: u64,
    /// Seconds by which this machine's clock is ahead of the last time that a server has seen. None
    /// if no server has seen a time.
    pub ahead_of_last_seen: Option<i64>,
}

/// Reads the status of the store in `folder`, which must exist and not be in use. Blocks.
///
/// # Errors
/// [`OpenError`].
pub fn status(folder: &Path) -> Result<Status, OpenError> {
    let mut opener = Opener::new(folder, CACHE_BYTES);
    let open = opener.open_existing()?;
    let wall = Timestamp::now();
    let last_seen = last_seen::read(&open.database).map_err(|fault| opener.damaged(fault))?;
    let ahead_of_last_seen = last_seen.map(|time| wall.millis_after(time) / 1_000);
    let counts = || -> Result<[u64; 3], Fault> {
        let transaction = open.database.begin_read()?;
        let (users, identities) =
            (transaction.open_table(USERS)?, transaction.open_table(IDENTITIES)?);
        Ok([users.len()?, identities.len()?, transaction.open_table(REQUESTS)?.len()?])
    };
    let [users, identities, requests] = counts().map_err(|fault| opener.damaged(fault))?;
    let file_bytes =
        opener.file().metadata().map_err(|error| OpenError::io(opener.file(), error))?.len();
    let found = versions(&open.database).map_err(|error| opener.damaged(error))?;
    let Versions { schema, rules } = found.ok_or_else(|| opener.damaged(NO_VERSION))?;

    Ok(Status {
        folder: folder.to_owned(),
        schema_version: schema,
        rules_version: rules.version,
        can_be_upgraded: schema < VERSION,
        file_bytes,
        users,
        identities,
        requests,
        ahead_of_last_seen,
    })
}

/// Confirms that this machine's clock is right: its time becomes the last time seen of the store in
/// `folder`, which must exist and not be in use. Blocks.
///
/// # Errors
/// [`OpenError`].
pub fn confirm_clock(folder: &Path) -> Result<(), OpenError> {
    let mut opener = Opener::new(folder, CACHE_BYTES);
    let open = opener.open_existing()?;
    let write = || {
        let transaction = open.database.begin_write()?;
        last_seen::write(&transaction, Timestamp::now())?;
        open.commit(transaction)
    };
    write().map_err(|fault| opener.damaged(chain(&fault)))
}
