//! The versions of a store, which one document has. A program that supports them writes in their
//! form; another program stops.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::gauge;
use mongodb::Database;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};
use tokio::time::Instant;

use crate::client::error::{Fault, OpenError};
use crate::client::supported::{OLDEST, Supported, VERSION};
use crate::schema::bson::number;
use crate::schema::fields::{
    EPOCH, ID, META, META_NEXT_RULES_VERSION, META_RULES_VERSION, META_SCHEMA_VERSION, SCHEMA,
};
use polynym_directory::{Consistency, StoredRules};
use polynym_identifier::{RULES_VERSION, Rules};
use polynym_store_common::version_gauges::set_versions;

/// The time for which look-ups rely on the rules that were read last: three heartbeats.
pub const LEASE: Duration = Duration::from_secs(6);

/// The epoch of a new store.
pub const FIRST_EPOCH: i32 = 1;

/// The time limit of a read of the versions.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

impl Supported {
    /// Whether a store has versions that the program supports.
    const fn contains(self, versions: Versions) -> bool {
        OLDEST <= versions.schema && versions.schema <= self.schema && self.contains_rules(versions)
    }

    const fn contains_rules(self, versions: Versions) -> bool {
        Rules::OLDEST <= versions.rules && versions.latest_rules() <= self.rules
    }
}

/// The gauge of a replica set that has become a shard: its name and its help text.
pub const BECAME_SHARD: (&str, &str) = (
    "polynym_store_became_shard",
    "1 once the replica set of the store is a shard of a cluster, and the server no longer uses it",
);

/// The versions of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of the schema.
    pub schema: i64,
    /// Of the rules of normalisation.
    pub rules: u32,
    /// Of the rules to which identities are being moved, if they are.
    pub moving: Option<u32>,
    /// The epoch, which rises when a version changes. MongoDB refuses users and tenants of an
    /// earlier epoch.
    pub epoch: i32,
}

impl Versions {
    /// The versions of a new store.
    pub const NEW: Self =
        Self { schema: VERSION, rules: RULES_VERSION, moving: None, epoch: FIRST_EPOCH };

    /// The versions in a document, if it has them.
    fn of(document: &Document) -> Option<Self> {
        let field = |name| document.get(name).and_then(number);
        let rules = |rules: i64| rules.try_into().unwrap_or(u32::MAX);
        Some(Self {
            schema: field(META_SCHEMA_VERSION)?,
            rules: field(META_RULES_VERSION).map_or(Rules::UNNAMED, rules),
            moving: field(META_NEXT_RULES_VERSION).map(rules),
            epoch: field(EPOCH).map_or(0, |epoch| epoch.try_into().unwrap_or(i32::MAX)),
        })
    }

    /// The document with these versions.
    pub fn document(self) -> Document {
        let mut document = doc! {
            ID: SCHEMA,
            META_SCHEMA_VERSION: self.schema,
            META_RULES_VERSION: i64::from(self.rules),
            EPOCH: self.epoch,
        };
        document.extend(
            self.moving.map(|rules| (META_NEXT_RULES_VERSION.to_owned(), i64::from(rules).into())),
        );
        document
    }

    /// The rules by which a program may not support the store: the oldest ones, if it does not know
    /// them any more, else the latest.
    const fn decisive_rules(self) -> u32 {
        if self.rules < Rules::OLDEST { self.rules } else { self.latest_rules() }
    }

    /// The latest rules that identities may have.
    const fn latest_rules(self) -> u32 {
        match self.moving {
            Some(rules) => rules,
            None => self.rules,
        }
    }

    /// The rules of normalisation.
    pub const fn stored_rules(self) -> StoredRules {
        StoredRules { version: self.rules, next: self.moving }
    }

    fn measure(self) {
        set_versions(self.schema as f64, self.rules);
    }

    /// The versions of the store in the database, if there is one.
    ///
    /// # Errors
    /// The server's.
    pub async fn in_database(database: &Database) -> Result<Option<Self>, DriverError> {
        Ok(read(database).await?.as_ref().and_then(Self::of))
    }

    /// The reason why a program that supports `supported` cannot use the store, if it cannot.
    pub fn obstacle(self, supported: Supported) -> Option<String> {
        let (schema, rules) = (self.schema, self.decisive_rules());
        let Supported { schema: newest, rules: newest_rules } = supported;
        (!supported.contains(self)).then(|| {
            format!(
                "schema version {schema} and rules version {rules}: this program supports schema \
                 version {newest} and rules version {newest_rules}; {}",
                supported.advice(schema, rules)
            )
        })
    }

    /// The advice for a store of an older schema that this program supports.
    pub fn advice(self) -> Option<String> {
        let Self { schema, .. } = Self::NEW;
        (Supported::PRESENT.contains(self) && self.schema < schema)
            .then(|| format!("`polynym store upgrade` takes it to schema version {schema}"))
    }

    /// The versions of the store in `database`, which `supported` must contain.
    ///
    /// # Errors
    /// [`OpenError::NotInitialised`], [`OpenError::Version`], or an error of the server.
    pub async fn supported_in(
        database: &Database,
        supported: Supported,
    ) -> Result<Self, OpenError> {
        let name = || database.name().to_owned();
        let document =
            read(database).await?.ok_or_else(|| OpenError::NotInitialised { database: name() })?;
        let versions = Self::of(&document).ok_or_else(|| OpenError::Foreign {
            database: name(),
            what: format!("{META} without a version"),
        })?;
        if supported.contains(versions) {
            return Ok(versions);
        }
        let (found, rules) = (versions.schema, versions.decisive_rules());

        Err(OpenError::Version { database: name(), found, rules, supported })
    }
}

/// The document of the schema, if there is one.
pub async fn read(database: &Database) -> Result<Option<Document>, DriverError> {
    let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
    let meta = database.collection::<RawDocumentBuf>(META);
    let find = meta.find_one(doc! { ID: SCHEMA }).read_concern(ReadConcern::majority());
    let document = find.selection_criteria(primary).max_time(READ_TIMEOUT).await?;
    Ok(document.map(|document| Document::try_from(document.as_ref())).transpose()?)
}

/// The latest known versions of an open store. It stops writes of a program that does not support
/// them.
pub struct VersionGuard {
    supported: Supported,
    /// The versions, and when they were requested.
    latest: Mutex<(Versions, Instant)>,
    /// Whether the replica set of the URI has become a shard of a cluster. What this server writes
    /// there is not unique, and what routers have moved away is missing.
    is_shard: AtomicBool,
}

impl VersionGuard {
    /// A guard with versions that were just read.
    pub fn new(supported: Supported, versions: Versions) -> Self {
        versions.measure();
        let latest = Mutex::new((versions, Instant::now()));
        Self { supported, latest, is_shard: AtomicBool::new(false) }
    }

    /// The versions with which this program may write.
    ///
    /// # Errors
    /// [`Fault::Outdated`] if the program does not support them; [`Fault::BecameShard`].
    pub fn versions(&self) -> Result<Versions, Fault> {
        self.check_topology()?;
        let (latest, _) = self.latest();
        if self.supported.contains(latest) { Ok(latest) } else { Err(self.outdated(latest)) }
    }

    /// Fails if the program does not support the versions of the store in another database.
    ///
    /// # Errors
    /// Those of [`Versions::supported_in`].
    pub async fn check(&self, database: &Database) -> Result<(), OpenError> {
        Versions::supported_in(database, self.supported).await.map(drop)
    }

    /// Reads the versions again. Returns whether they have changed.
    ///
    /// # Errors
    /// [`Fault`]: they could not be read, and stay unchanged.
    pub async fn refresh(&self, database: &Database) -> Result<bool, Fault> {
        let requested = Instant::now();
        let stored = read(database).await?.as_ref().and_then(Versions::of);
        let versions = stored.ok_or_else(|| Fault::damaged("the store has no versions"))?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if requested < latest.1 {
            return Ok(false);
        }

        versions.measure();
        let (before, _) = std::mem::replace(&mut *latest, (versions, requested));
        if before != versions {
            self.log(versions);
        }
        Ok(before != versions)
    }

    /// The rules of normalisation, at most [`LEASE`] old.
    ///
    /// # Errors
    /// [`Fault::Outdated`] if this program does not support them; [`Fault`] if they cannot be read,
    /// and [`Fault::BecameShard`].
    pub async fn rules(
        &self,
        database: &Database,
        consistency: Consistency,
    ) -> Result<StoredRules, Fault> {
        self.check_topology()?;
        let (mut latest, read_at) = self.latest();
        if read_at.elapsed() > LEASE {
            match self.refresh(database).await {
                Err(fault) if consistency != Consistency::Eventual => return Err(fault),
                _ => latest = self.latest().0,
            }
        }

        if self.supported.contains_rules(latest) {
            Ok(latest.stored_rules())
        } else {
            Err(self.outdated(latest))
        }
    }

    /// Stops reads and writes for good: the replica set has become a shard.
    pub fn record_shard(&self) {
        gauge!(BECAME_SHARD.0).set(1);
        if !self.is_shard.swap(true, Relaxed) {
            tracing::error!(fault = %Fault::BecameShard, "this server stops reading and writing");
        }
    }

    /// Fails if the replica set has become a shard.
    pub fn check_topology(&self) -> Result<(), Fault> {
        if self.is_shard.load(Relaxed) { Err(Fault::BecameShard) } else { Ok(()) }
    }

    fn latest(&self) -> (Versions, Instant) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, versions: Versions) {
        let (schema, rules, epoch) = (versions.schema, versions.latest_rules(), versions.epoch);
        if self.supported.contains(versions) {
            tracing::info!(schema, rules, epoch, "the versions of the store changed");
        } else {
            let Supported { schema: newest, rules: newest_rules } = self.supported;
            tracing::error!(
                schema,
                rules,
                newest,
                newest_rules,
                "the store was upgraded past this program: it rejects mutations"
            );
        }
    }

    fn outdated(&self, versions: Versions) -> Fault {
        let Supported { schema, rules } = self.supported;
        Fault::Outdated(format!(
            "it has schema version {} and rules version {}, this program supports them up to \
             {schema} and {rules}",
            versions.schema,
            versions.latest_rules()
        ))
    }
}
