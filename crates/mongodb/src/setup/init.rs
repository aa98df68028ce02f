//! `store init`: creates a store in a database of MongoDB, and reports each step. Every step first
//! checks whether it is done, so that it can be repeated after an interruption or concurrently, and
//! leaves used collections unchanged. The last step inserts the document that marks the database as
//! a store.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::{Error as DriverError, ErrorKind};

use crate::client::connect::{connect, disconnect};
use crate::client::error::OpenError;
use crate::client::supported::Supported;
use crate::command::run::run;
use crate::command::write::WriteCommand;
use crate::presence::servers::{Presence, ServerDocument};
use crate::schema::fields::{META, USERS};
use crate::schema::versions::Versions;
use crate::setup::cluster::{Cluster, INDEX_TIMEOUT, STEP_TIMEOUT, retry_for, retry_step};
use crate::setup::inspect::{CollectionState, inspect, obstacle};
use crate::setup::validators::{CLUSTERED_INDEX, by_order, is_clustered, level, validator};
use crate::setup::zones::Zones;

/// The time for which an attempt to change a validator waits for transactions. All other operations
/// wait for the attempt.
const VALIDATOR_WAIT: Duration = Duration::from_millis(500);
/// The total time of these attempts: longer than the lifetime of an abandoned transaction.
const VALIDATOR_TIMEOUT: Duration = Duration::from_secs(150);

/// The age in milliseconds of the document of a server that has stopped.
const GONE_MS: i64 = 30_000;

/// NamespaceExists.
const NAMESPACE_EXISTS: i32 = 48;
/// InvalidOptions, and the code for an unknown field: how servers refuse the options of a later
/// version.
const UNSUPPORTED: [i32; 2] = [72, 40_415];
const TOO_OLD: &str = "inboxes need MongoDB 6.0, also as its feature compatibility version: \
    db.adminCommand({ setFeatureCompatibilityVersion: \"6.0\" })";

/// The options of [`init`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitOptions {
    /// Whether the ranges of users and requests are spread over all shards now, or left to the
    /// balancer. MongoDB itself spreads identities.
    pub spread: bool,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self { spread: true }
    }
}

/// Creates a store in the database that `uri` names, and reports each step to `progress` in a
/// sentence. Existing parts stay unchanged, except that empty chunks may move to other shards.
///
/// # Errors
/// [`OpenError`]. Nothing was changed if the server is unsuitable, or if the database holds a store
/// of another version or other data. If a step fails, another run continues from there.
pub async fn init(
    uri: &str,
    options: &InitOptions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let database = connect(uri).await?;
    let created = Init { database: &database, spread: options.spread, progress }.run().await;
    disconnect(&database).await;
    created
}

/// Creates the missing parts of a store of these versions, and leaves their spread to the balancer.
///
/// # Errors
/// [`OpenError`]. If a step fails, another run continues from there.
pub async fn complete(
    database: &Database,
    versions: Versions,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), OpenError> {
    let cluster = Cluster::of(database).await?;
    let found = inspect(database, cluster.as_ref()).await?;
    let init = Init { database, spread: false, progress };
    init.create_missing(cluster.as_ref(), &found, Some(versions)).await
}

/// A run of `store init` or a part of an upgrade.
pub struct Init<'i> {
    pub database: &'i Database,
    pub spread: bool,
    pub progress: &'i (dyn Fn(&str) + Sync),
}

impl Init<'_> {
    async fn run(&self) -> Result<(), OpenError> {
        let cluster = Cluster::of(self.database).await?;
        let found = inspect(self.database, cluster.as_ref()).await?;
        // Read after the inspection: a concurrent run may have created the collections.
        let versions = self.versions().await?;
        self.create_missing(cluster.as_ref(), &found, versions).await?;
        let Some(Versions { schema, .. }) = versions else { return self.finish().await };
        let name = self.database.name();
        (self.progress)(&format!("database {name} was a store of schema version {schema} before"));
        Ok(())
    }

    /// Creates the missing parts of a store of these versions, or of a new store.
    async fn create_missing(
        &self,
        cluster: Option<&Cluster>,
        found: &[CollectionState],
        versions: Option<Versions>,
    ) -> Result<(), OpenError> {
        if let Some(what) = obstacle(found, versions.is_some()) {
            return Err(OpenError::Foreign { database: self.database.name().to_owned(), what });
        }
        let epoch = versions.unwrap_or(Versions::NEW).epoch;
        for found in found {
            let ensured = self.ensure_collection(found, epoch).await;
            ensured.map_err(|error| error.in_collection(found.name))?;
        }
        match cluster {
            Some(cluster) => self.shard(cluster, found).await,
            None => Ok(()),
        }
    }

    /// The versions of the store in the database, if there is one.
    async fn versions(&self) -> Result<Option<Versions>, OpenError> {
        match Versions::supported_in(self.database, Supported::PRESENT).await {
            Err(OpenError::NotInitialised { database: name }) => {
                let meta = self.database.collection::<RawDocumentBuf>(META);
                match meta.find_one(doc! {}).max_time(STEP_TIMEOUT).await? {
                    None => Ok(None),
                    Some(_) => Err(OpenError::Foreign {
                        database: name,
                        what: format!("{META} with something else in it"),
                    }),
                }
            }
            found => found.map(Some),
        }
    }

    /// Creates a collection, its validator and its indexes, if they are missing.
    async fn ensure_collection(
        &self,
        found: &CollectionState,
        epoch: i32,
    ) -> Result<(), OpenError> {
        let name = found.name;
        let is_new = !found.exists() && self.create(name, epoch).await?;
        let is_checked = found.is_checked(epoch);
        if !is_new && !is_checked {
            let mut command = doc! { "collMod": name };
            command.extend(validation_options(name, epoch));
            let set = async || run(self.database, command.clone(), VALIDATOR_WAIT).await;
            retry_for(VALIDATOR_TIMEOUT, set).await?;
        }

        (self.progress)(&match (is_new, is_checked) {
            (true, _) => format!("{name}: made"),
            (false, true) => format!("{name}: was there"),
            (false, false) => format!("{name}: was there; its validator was set"),
        });
        for index in found.missing_indexes() {
            self.create_index(found, index).await?;
            (self.progress)(&format!("{name}: its index was made"));
        }
        Ok(())
    }

    /// Creates an index, or changes its expiry.
    async fn create_index(
        &self,
        found: &CollectionState,
        index: Document,
    ) -> Result<(), DriverError> {
        let name = found.name;
        let command = match found.index_on(&index) {
            None => doc! { "createIndexes": name, "indexes": [index] },
            Some(_) => {
                let seconds = index.get("expireAfterSeconds").cloned();
                let keys = index.get("key").cloned();
                let index = doc! { "keyPattern": keys, "expireAfterSeconds": seconds };
                doc! { "collMod": name, "index": index }
            }
        };
        let create = async || run(self.database, command.clone(), INDEX_TIMEOUT).await;
        retry_step(create).await.map(drop)
    }

    /// Creates a collection. Returns whether it did not exist before.
    async fn create(&self, name: &str, epoch: i32) -> Result<bool, OpenError> {
        let mut command = doc! { "create": name };
        command.extend(validation_options(name, epoch));
        if is_clustered(name) {
            command.insert(CLUSTERED_INDEX, doc! { "key": by_order(), "unique": true });
        }
        match run(self.database, command, STEP_TIMEOUT).await {
            Ok(_) => Ok(true),
            Err(error) => match &*error.kind {
                ErrorKind::Command(refused) if refused.code == NAMESPACE_EXISTS => Ok(false),
                ErrorKind::Command(refused)
                    if is_clustered(name) && UNSUPPORTED.contains(&refused.code) =>
                {
                    Err(OpenError::Failed(TOO_OLD.to_owned()))
                }
                _ => Err(error.into()),
            },
        }
    }

    /// Shards the collections and spreads them over all shards, if this was requested.
    async fn shard(&self, cluster: &Cluster, found: &[CollectionState]) -> Result<(), OpenError> {
        let shards = cluster.shards().await?;
        if shards.is_empty() {
            return Err(OpenError::Failed(
                "the cluster has no shards: add one with sh.addShard()".to_owned(),
            ));
        }

        // Where users are sharded already, all servers use routers.
        if found.iter().any(|found| found.name == USERS && found.key.is_none()) {
            self.check_servers().await?;
        }
        cluster.enable().await?;
        if !self.spread {
            for found in found {
                let sharded = self.shard_one(cluster, found).await;
                sharded.map_err(|error| OpenError::from(error).in_collection(found.name))?;
            }
            return Ok(());
        }
        let zones = Zones::new(self.database);
        let are_zoned = zones.add(&shards).await.is_ok();
        let spread = self.spread(cluster, found, &shards, are_zoned.then_some(&zones)).await;
        match zones.remove().await {
            // Without the privilege to find zones there are none.
            Err(_) if !are_zoned => {}
            removed => removed?,
        }
        spread
    }

    /// Fails while servers run that are not connected through routers: they would go on to write to
    /// the first shard alone, where uniqueness is not checked against the others.
    async fn check_servers(&self) -> Result<(), OpenError> {
        let servers = Presence::all_in(self.database).await?;
        let Some(newest) = servers.iter().map(|server| server.time).max() else { return Ok(()) };
        let hello = self.database.run_command(doc! { "hello": 1 }).await?;
        let now = hello.get_datetime("localTime").copied().unwrap_or(newest);
        let is_present = |server: &&ServerDocument| {
            !server.is_routed && now.timestamp_millis() - server.time.timestamp_millis() < GONE_MS
        };
        match servers.iter().filter(is_present).count() {
            0 => Ok(()),
            count => Err(OpenError::Direct { count }),
        }
    }

    /// Marks the database as a store.
    async fn finish(&self) -> Result<(), OpenError> {
        let (name, version) = (self.database.name(), Versions::NEW.schema);
        let document =
            RawDocumentBuf::try_from(&Versions::NEW.document()).map_err(DriverError::from)?;
        match WriteCommand::insert(META, [document]).run(self.database, STEP_TIMEOUT).await {
            Ok(_) => (self.progress)(&format!(
                "database {name} is a store of schema version {version} now"
            )),
            Err(fault) if fault.is_duplicate() => {
                (self.progress)(&format!(
                    "database {name} was a store of schema version {version} before"
                ));
            }
            Err(fault) => return Err(OpenError::Failed(fault.to_string())),
        }
        Ok(())
    }
}

impl OpenError {
    /// Adds the name of the collection to a failure.
    #[must_use]
    pub fn in_collection(self, name: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{name}: {text}")),
            other => other,
        }
    }
}

/// The options of a collection by which the server validates writes.
fn validation_options(name: &str, epoch: i32) -> Document {
    let level = level(name).unwrap_or("moderate");
    doc! { "validator": validator(name, epoch), "validationLevel": level }
}
