//! The connection to MongoDB: defaults of the URI's options, and the check that the deployment has
//! transactions.

use std::time::Duration;

use futures_util::future::try_join_all;
use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, ReadPreference, SelectionCriteria};
use mongodb::{Client, Database};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::error::OpenError;
use crate::client::pool;

/// The size of the pool: look-ups share connections, a mutation occupies one.
const MAX_POOL: u32 = 150;
/// The least size of the pool: opening a connection takes longer than a look-up.
const MIN_POOL: u32 = 8;
const MAX_CONNECTING: u32 = 8;
/// The limit of connections for the look-ups of one runtime: they share calls.
const MAX_LOOK_UP_POOL: u32 = 64;
/// MongoDB's own databases.
const SYSTEM_DATABASES: [&str; 3] = ["admin", "config", "local"];
/// The time to wait for a primary. An election takes longer: the caller has to retry.
const SERVER_SELECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for opening the least connections of a pool.
const WARMING_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval of the driver's heartbeats. It plus [`CONNECT_TIMEOUT`] is the time after which the
/// driver gives up a hung server: before most calls time out.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// The time limit for closing a client.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects to the database that `uri` names and checks that the deployment has transactions.
///
/// # Errors
/// [`OpenError`].
pub async fn connect(uri: &str) -> Result<Database, OpenError> {
    connect_at_least(uri, 0).await
}

/// Connects as [`connect`] does, with a limit of connections that is at least this.
///
/// # Errors
/// [`OpenError`].
pub async fn connect_at_least(uri: &str, connections: u32) -> Result<Database, OpenError> {
    let (mut options, name) = options(uri).await?;
    options.max_pool_size = options.max_pool_size.max(Some(connections));
    let database = Client::with_options(options)?.database(&name);
    or_disconnect(&database, check_topology(&database)).await?;
    Ok(database)
}

/// Connects as [`connect`] does, by a warm pool. Returns the limit of connections too.
///
/// # Errors
/// [`OpenError`].
pub async fn connect_pool(uri: &str) -> Result<(Database, usize), OpenError> {
    let (options, name) = options(uri).await?;
    let size = options.max_pool_size.unwrap_or(MAX_POOL) as usize;
    let least = options.min_pool_size.unwrap_or(MIN_POOL);
    let database = Client::with_options(options)?.database(&name);
    or_disconnect(&database, async {
        check_topology(&database).await?;
        warm(&database, least).await
    })
    .await?;
    Ok((database, size))
}

/// Connects to a database by a client with a few connections of its own, which no other operation
/// can occupy.
///
/// # Errors
/// [`OpenError`].
pub async fn connect_apart(
    uri: &str,
    app_name: &str,
    connections: u32,
) -> Result<Database, OpenError> {
    let (mut options, name) = options(uri).await?;
    options.app_name = Some(app_name.to_owned());
    (options.min_pool_size, options.max_pool_size) = (None, Some(connections));
    let database = Client::with_options(options)?.database(&name);
    or_disconnect(&database, warm(&database, 1)).await?;
    Ok(database)
}

/// Connects for the look-ups of `runtime`, on it, by a warm pool.
///
/// # Errors
/// [`OpenError`].
pub async fn connect_on(uri: &str, runtime: &Handle) -> Result<Database, OpenError> {
    let uri = uri.to_owned();
    let connecting = runtime.spawn(async move { connect_for_look_ups(&uri).await });
    connecting.await.map_err(|error| OpenError::Failed(error.to_string())).flatten()
}

async fn connect_for_look_ups(uri: &str) -> Result<Database, OpenError> {
    let (mut options, name) = options(uri).await?;
    options.max_pool_size = options.max_pool_size.min(Some(MAX_LOOK_UP_POOL));
    options.min_pool_size = options.min_pool_size.min(options.max_pool_size);
    let least = options.min_pool_size.unwrap_or(MIN_POOL);
    let database = Client::with_options(options)?.database(&name);
    or_disconnect(&database, warm(&database, least)).await?;
    Ok(database)
}

/// Opens about as many connections as a pool has at least, by commands at the same time. The
/// driver's own warming never ends if a connection cannot be opened, and leaks its client.
async fn warm(database: &Database, connections: u32) -> Result<(), OpenError> {
    let ping = async |_| database.run_command(doc! { "ping": 1 }).await;
    match timeout(WARMING_TIMEOUT, try_join_all((0..connections).map(ping))).await {
        Ok(pinged) => Ok(pinged.map(drop)?),
        Err(_) => Err(OpenError::Unreachable("its connections take too long to open".to_owned())),
    }
}

/// The options of `uri` with the defaults of a store, and the name of the database.
async fn options(uri: &str) -> Result<(ClientOptions, String), OpenError> {
    let mut options = ClientOptions::parse(uri).await.map_err(|error| uri_fault(&error))?;
    let Some(database) = options.default_database.clone() else {
        return Err(OpenError::Uri("the URI names no database".to_owned()));
    };
    if SYSTEM_DATABASES.contains(&database.as_str()) {
        return Err(OpenError::Uri(format!("the database {database} belongs to MongoDB")));
    }

    options.app_name.get_or_insert("polynym".to_owned());
    options.max_pool_size.get_or_insert(MAX_POOL);
    options.min_pool_size.get_or_insert(MIN_POOL.min(options.max_pool_size.unwrap_or(MAX_POOL)));
    options.max_connecting.get_or_insert(MAX_CONNECTING);
    options.server_selection_timeout.get_or_insert(SERVER_SELECTION_TIMEOUT);
    options.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
    options.heartbeat_freq.get_or_insert(HEARTBEAT_INTERVAL);
    // Reads go to the primary and see majority-committed data unless they say otherwise.
    options.selection_criteria = Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
    options.read_concern = None;
    // All writes are in transactions, or are repeated by the store itself.
    options.retry_writes = Some(false);
    options.cmap_event_handler = Some(pool::watch());

    Ok((options, database))
}

/// Whether the server is a router of a sharded cluster.
///
/// # Errors
/// The server's.
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
    let is_member = is_shard(database).await || hello.contains_key("configsvr");
    if is_member { Err(OpenError::Shard) } else { Ok(()) }
}

/// Whether the server is a shard of a cluster.
pub async fn is_shard(database: &Database) -> bool {
    // A missing privilege is not an error: shards do not know the users of a cluster.
    let state = database.client().database("admin").run_command(doc! { "shardingState": 1 }).await;
    state.is_ok_and(|state| state.get_bool("enabled").unwrap_or_default())
}

/// Runs `work` on a database, and disconnects if it fails.
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

/// Ends the sessions on the servers and closes all connections. Dropping a client does so in
/// background tasks, which the end of the program may cut off.
pub async fn disconnect(database: &Database) {
    let _ = timeout(SHUTDOWN_TIMEOUT, async { database.client().clone().shutdown().await }).await;
}

/// The error for a malformed URI. The driver's message has no password.
fn uri_fault(error: &mongodb::error::Error) -> OpenError {
    match OpenError::from(error.clone()) {
        OpenError::Failed(text) => OpenError::Uri(text),
        other => other,
    }
}
