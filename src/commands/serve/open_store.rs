//! The store that a server opens, and its backend.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polynym::settings::{MongoUri, Serve, StoreChoice};
use polynym_cli::Failure;
use polynym_directory::{Backend, LookUps};
use polynym_embedded::{self as embedded, Embedded};
use polynym_layers::coalesce::{self, Coalesced};
use polynym_layers::lookup_cache::Cached;
use polynym_layers::per_runtime::PerRuntime;
use polynym_mongodb::{self as mongo, Mongo};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// The pause before MongoDB is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The location of the store; a temporary folder is removed with it.
pub enum StoreLocation<'s> {
    Folder(&'s Path),
    Temporary(TempDir),
    Mongo(&'s MongoUri),
}

impl<'s> StoreLocation<'s> {
    pub fn new(store: &'s StoreChoice) -> Result<Self, Failure> {
        match store {
            StoreChoice::Embedded(folder) => Ok(Self::Folder(folder)),
            StoreChoice::Mongo(uri) => Ok(Self::Mongo(uri)),
            StoreChoice::Temporary => {
                let made = tempfile::Builder::new().prefix("polynym-").tempdir();
                let made = made.map_err(|error| {
                    Failure::Other(format!("cannot make a temporary folder: {error}"))
                })?;
                Ok(Self::Temporary(made))
            }
        }
    }

    pub fn temporary(&self) -> Option<&Path> {
        match self {
            Self::Temporary(folder) => Some(folder.path()),
            Self::Folder(_) | Self::Mongo(_) => None,
        }
    }
}

/// The store that is served.
pub enum OpenStore {
    Embedded(Arc<Embedded>),
    Mongo(Arc<Mongo>, Vec<OnCore>),
}

/// A store for the look-ups of a core.
pub struct OnCore {
    core: Handle,
    store: Arc<Mongo>,
}

impl OpenStore {
    /// Opens the store. On MongoDB, the look-ups of each core get connections of their own.
    pub async fn open(
        location: &StoreLocation<'_>,
        settings: &Serve,
        cores: impl Iterator<Item = &Handle>,
    ) -> Result<Self, Failure> {
        match location {
            StoreLocation::Folder(folder) => Self::open_embedded(folder, settings).await,
            StoreLocation::Temporary(folder) => Self::open_embedded(folder.path(), settings).await,
            StoreLocation::Mongo(uri) => Self::open_mongo(uri, settings, cores).await,
        }
    }

    async fn open_mongo(
        uri: &MongoUri,
        settings: &Serve,
        cores: impl Iterator<Item = &Handle>,
    ) -> Result<Self, Failure> {
        let failure = |error| Failure::Other(format!("{uri}: {error}"));
        let store = reach(uri, settings).await.map_err(failure)?;
        let mut on_cores = Vec::new();
        for core in cores {
            let own = store.on_runtime(uri.as_str(), core).await.map_err(failure)?;
            on_cores.push(OnCore { core: core.clone(), store: Arc::new(own) });
        }
        Ok(Self::Mongo(Arc::new(store), on_cores))
    }

    async fn open_embedded(folder: &Path, settings: &Serve) -> Result<Self, Failure> {
        let group_limit =
            if settings.group_commit { embedded::Options::default().group_limit } else { 1 };
        let Serve { cache, hints, create, sample, ephemeral, .. } = *settings;
        let options = embedded::Options {
            cache_bytes: cache,
            hint_bytes: hints,
            group_limit,
            create: create || sample || ephemeral,
            durable: !ephemeral,
            ..embedded::Options::default()
        };
        let folder = folder.to_owned();
        let opened = tokio::task::spawn_blocking(move || Embedded::open(&folder, options)).await;
        let opened = opened
            .map_err(|error| Failure::Other(format!("the store cannot be opened: {error}")))?;

        Ok(Self::Embedded(Arc::new(opened.map_err(|error| Failure::Other(error.to_string()))?)))
    }

    /// Connects to MongoDB by another URI. Operations in flight end with the connections with which
    /// they began. A failure changes nothing.
    pub async fn reconnect(&self, uri: &MongoUri) -> Result<(), mongo::OpenError> {
        if let Self::Mongo(store, on_cores) = self {
            let on_cores: Vec<_> = on_cores.iter().map(|own| (&*own.store, &own.core)).collect();
            store.reconnect(uri.as_str(), &on_cores).await?;
        }
        Ok(())
    }

    /// The backend of the directory. Coalescing and caching pay only for stores on other machines.
    pub fn backend(&self, coalesce: bool) -> Backend {
        let (store, on_cores) = match self {
            Self::Embedded(store) => return store.backend(),
            Self::Mongo(store, on_cores) => (store, on_cores),
        };
        let path = |OnCore { core, store }: &OnCore| (core.id(), look_ups(store, coalesce));
        let paths = PerRuntime::new(on_cores.iter().map(path).collect(), look_ups(store, coalesce));
        let backend = Backend { lookups: Arc::new(paths), ..store.backend() };
        match store.cache() {
            Some(cache) => {
                let rules = backend.rules.clone();
                backend.layered(|inner| Cached::new(inner, rules, cache))
            }
            None => backend,
        }
    }

    /// Returns once the store cannot accept mutations any more.
    pub async fn writer_ended(&self) {
        match self {
            Self::Embedded(store) => store.writer_ended().await,
            Self::Mongo(..) => pending().await,
        }
    }

    /// Waits for the operations of callers that left, and disconnects from the servers. The
    /// embedded store closes when it is dropped.
    pub async fn close(&self) {
        if let Self::Mongo(store, on_cores) = self {
            store.close().await;
            for own in on_cores {
                own.store.disconnect().await;
            }
        }
    }
}

/// Opens a store on MongoDB. While no server can be reached, tries again for the time that the
/// settings allow; every other error is returned at once.
async fn reach(uri: &MongoUri, settings: &Serve) -> Result<Mongo, mongo::OpenError> {
    let options = || mongo::Options {
        timeout: settings.call_timeout,
        hint_bytes: settings.hints,
        cache_bytes: settings.lookup_cache,
    };
    let start = Instant::now();
    loop {
        let error = match Mongo::open(uri.as_str(), options()).await {
            Err(error @ mongo::OpenError::Unreachable(_)) => error,
            outcome => return outcome,
        };
        let left = settings.wait_for_store.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        tracing::warn!("{uri}: {error}; trying again for {} s", left.as_secs_f64().ceil());
        sleep(RETRY_DELAY.min(left)).await;
    }
}

/// The look-ups of a store, which share calls if they coalesce.
fn look_ups(store: &Arc<Mongo>, coalesce: bool) -> Arc<dyn LookUps> {
    if !coalesce {
        return store.clone();
    }
    let coalesced = Coalesced::new(store.clone(), coalesce::Options::default());
    Arc::new(coalesced.with_short_timeout(store.with_short_timeout()))
}
