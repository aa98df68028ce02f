//! Commands other than reads and writes.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, Document, deserialize_from_document, doc};
use mongodb::error::{Error as DriverError, ErrorKind, WriteFailure};

/// Runs a command, which MongoDB gives up after `time`.
///
/// # Errors
/// The server's. A write concern that was not satisfied is one: a failover may undo the command.
pub async fn run(
    database: &Database,
    mut command: Document,
    time: Duration,
) -> Result<Document, DriverError> {
    command.insert("maxTimeMS", millis(time));
    let reply = database.run_command(command).await?;
    let Ok(concern) = reply.get_document("writeConcernError") else { return Ok(reply) };
    let error = deserialize_from_document(concern.clone())?;
    Err(ErrorKind::Write(WriteFailure::WriteConcernError(error)).into())
}

/// The documents of the first batch of a command that lists collections or indexes.
///
/// # Errors
/// The server's.
pub async fn first_batch(
    database: &Database,
    command: Document,
    time: Duration,
) -> Result<Vec<Document>, DriverError> {
    let reply = run(database, command, time).await?;
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    Ok(batch.into_iter().flatten().filter_map(Bson::as_document).cloned().collect())
}

/// The listing of a collection, if it exists.
///
/// # Errors
/// The server's.
pub async fn listing(
    database: &Database,
    name: &str,
    time: Duration,
) -> Result<Option<Document>, DriverError> {
    let list = doc! { "listCollections": 1, "filter": { "name": name } };
    Ok(first_batch(database, list, time).await?.into_iter().next())
}

/// A time limit as MongoDB's number. Zero would be no limit.
pub fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1)
}
