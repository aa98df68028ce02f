//! The connection to MongoDB: defaults where the URI is silent, and whether what answers can keep a
//! store.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, ReadPreference, SelectionCriteria};
use mongodb::{Client, Database};
use tokio::time::timeout;

use crate::store::mongo::client::error::OpenError;
use crate::store::mongo::client::pool;

/// Connections at once: look-ups share them, mutations take one each while they last.
const MAX_POOL: u32 = 100;
/// Connections that are kept ready: opening one takes longer than a look-up.
const MIN_POOL: u32 = 8;
const MAX_CONNECTING: u32 = 8;
/// The `appName` of a connection that is kept apart.
const APART: &str = "polynym heartbeat";
/// MongoDB's own databases.
const OWN: [&str; 3] = ["admin", "config", "local"];
/// The time to wait for a primary: an election takes longer, and the caller is asked to try again.
const SELECTION: Duration = Duration::from_secs(5);
/// The time for which a connection may be established.
const CONNECT: Duration = Duration::from_secs(5);
/// The interval of heartbeats. A server without one for this time and [`CONNECT`] has hung: calls
/// that wait for it end, and are tried with its successor, before most calls time out.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// The time that servers get to note that a client closes.
const PARTING: Duration = Duration::from_secs(1);

/// Connects to the database that `uri` names and makes sure that it is one with transactions.
///
/// # Errors
/// [`OpenError`].
pub async fn connect(uri: &str) -> Result<Database, OpenError> {
    let (options, name) = options(uri).await?;
    let database = Client::with_options(options)?.database(&name);
    or_disconnect(&database, check_topology(&database)).await?;
    Ok(database)
}

/// Connects once more to a database that was connected to, by a connection that no other operation
/// can occupy.
///
/// # Errors
/// [`OpenError`].
pub async fn connect_apart(uri: &str) -> Result<Database, OpenError> {
    let (mut options, name) = options(uri).await?;
    options.app_name = Some(APART.to_owned());
    (options.min_pool_size, options.max_pool_size) = (None, Some(1));
    Ok(Client::with_options(options)?.database(&name))
}

/// The options of `uri` with the defaults of a store, and the name of the database.
async fn options(uri: &str) -> Result<(ClientOptions, String), OpenError> {
    let mut options = ClientOptions::parse(uri).await.map_err(|error| uri_fault(&error))?;
    let database = options.default_database.clone();
    let database =
        database.ok_or_else(|| OpenError::Uri("the URI names no database".to_owned()))?;
    if OWN.contains(&database.as_str()) {
        return Err(OpenError::Uri(format!("the database {database} is MongoDB's own")));
    }

    options.app_name.get_or_insert("polynym".to_owned());
    options.max_pool_size.get_or_insert(MAX_POOL);
    options.min_pool_size.get_or_insert(MIN_POOL.min(options.max_pool_size.unwrap_or(MAX_POOL)));
    options.max_connecting.get_or_insert(MAX_CONNECTING);
    options.server_selection_timeout.get_or_insert(SELECTION);
    options.connect_timeout.get_or_insert(CONNECT);
    options.heartbeat_freq.get_or_insert(HEARTBEAT);
    // Only reads that say so themselves may be answered by another member, or by what no majority
    // has.
    options.selection_criteria = Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
    options.read_concern = None;
    // Everything that is written is written in a transaction, or again until it is there.
    options.retry_writes = Some(false);
    options.cmap_event_handler = Some(pool::watch());

    Ok((options, database))
}

/// Whether what answers is a router of a sharded cluster.
///
/// # Errors
/// What the server says.
pub async fn is_routed(database: &Database) -> Result<bool, OpenError> {
    Ok(is_router(&database.run_command(doc! { "hello": 1 }).await?))
}

fn is_router(hello: &Document) -> bool {
    hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid")
}

async fn check_topology(database: &Database) -> Result<(), OpenError> {
    let hello = database.run_command(doc! { "hello": 1 }).await?;
    if is_router(&hello) {
        return Ok(());
    }

    if !hello.contains_key("setName") {
        return Err(OpenError::Standalone);
    }
    // A missing permission is no fault: users of a cluster are not known to its shards.
    let state = database.client().database("admin").run_command(doc! { "shardingState": 1 }).await;
    let is_shard = state.is_ok_and(|state| state.get_bool("enabled").unwrap_or_default());
    if is_shard || hello.contains_key("configsvr") { Err(OpenError::Shard) } else { Ok(()) }
}

/// Does something with a database that was connected to, which is left where that fails.
pub async fn or_disconnect<T>(
    database: &Database,
    work: impl Future<Output = Result<T, OpenError>>,
) -> Result<T, OpenError> {
    let done = work.await;
    if done.is_err() {
        disconnect(database).await;
    }
    done
}

/// Ends the sessions on the servers and closes all connections. A client that is only dropped does
/// so in tasks of its own, which the end of the program may cut off.
pub async fn disconnect(database: &Database) {
    let _ = timeout(PARTING, async { database.client().clone().shutdown().await }).await;
}

/// The driver's own words for what is wrong with a URI carry no password.
fn uri_fault(error: &mongodb::error::Error) -> OpenError {
    match OpenError::from(error.clone()) {
        OpenError::Failed(text) => OpenError::Uri(text),
        other => other,
    }
}
