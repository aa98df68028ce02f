//! Opening the store: its snapshot, its clock, and the thread of its writer.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::{Semaphore, watch};

use crate::disk_space::DiskSpace;
use crate::error::{DegradedState, Fault, OpenError, chain};
use crate::file::opener::Opener;
use crate::job::{Job, QUEUE_BYTES};
use crate::last_seen::{self, LastSeen};
use crate::lookup::export::ExportSnapshots;
use crate::lookup::snapshot::{Caches, Published, Snapshot};
use crate::mutation::writer::{Shared, Writer};
use crate::options::Options;
use crate::recent_events::RecentEvents;
use crate::schema::token_key::token_key;
use crate::schema::versions::{NO_VERSION, Versions, versions};
use crate::sender_order::SenderOrder;
use crate::store::Embedded;
use crate::version::Supported;
use polynym_store_common::version_gauges::set_versions;

impl Embedded {
    /// Opens the store in `folder`, or creates it if `options` permit. Blocks on the disk.
    ///
    /// # Errors
    /// [`OpenError`]. The content of the folder is then unchanged.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_supporting(folder, options, Supported::PRESENT)
    }

    /// Opens the store as a program that supports these versions. Blocks on the disk.
    ///
    /// # Errors
    /// [`OpenError`]. The content of the folder is then unchanged.
    pub fn open_supporting(
        folder: &Path,
        options: Options,
        supported: Supported,
    ) -> Result<Self, OpenError> {
        let mut opener =
            Opener::new(folder, options.cache_bytes).supporting(supported).durable(options.durable);
        let open = if options.create { opener.open_or_create() } else { opener.open_existing() }?;
        let versions = versions(&open.database).map_err(|error| opener.damaged(error))?;
        let Versions { schema, rules } = versions.ok_or_else(|| opener.damaged(NO_VERSION))?;
        set_versions(schema as f64, rules.version);
        let damaged = |fault: Fault| opener.damaged(chain(&fault));
        let caches = Caches::new(options.hint_bytes);
        let hints = caches.hints.clone();
        let snapshot = Snapshot::new(&open.database, &caches).map_err(damaged)?;
        let recent = Arc::new(RecentEvents::new(snapshot.next_event().map_err(damaged)?));
        let published = Arc::new(Published::from_pointee(snapshot));
        let stored_time = last_seen::read(&open.database).map_err(damaged)?;
        let last_seen = Arc::new(LastSeen::new(stored_time, Instant::now()));
        let token_key = token_key(&open.database)
            .map_err(|error| OpenError::io(folder, io::Error::other(error)))?;
        let exports = Arc::new(ExportSnapshots::new(options.max_snapshot_writes));
        let degraded = Arc::new(DegradedState::empty());
        let shared = Shared {
            published: published.clone(),
            degraded: degraded.clone(),
            last_seen: last_seen.clone(),
            caches,
            recent: recent.clone(),
            exports: exports.clone(),
        };
        let writer = Writer::new(opener, open, shared, options.group_limit);
        let (jobs, alive, thread) = start(writer).map_err(|error| OpenError::io(folder, error))?;
        Ok(Self {
            folder: folder.to_owned(),
            disk: DiskSpace::new(folder, options.reserved_disk_bytes),
            exports,
            deliveries: SenderOrder::default(),
            published,
            degraded,
            last_seen,
            jobs: Some(jobs),
            queue: Arc::new(Semaphore::new(QUEUE_BYTES)),
            writer: Some(thread),
            recent,
            alive,
            rules,
            hints,
            token_key,
            batch_permits: Semaphore::new(cores()),
        })
    }
}

/// Starts the thread of a writer. Returns the sender of its jobs, and a receiver that is closed
/// once it has ended.
fn start(writer: Writer) -> io::Result<(Sender<Job>, watch::Receiver<()>, JoinHandle<()>)> {
    let (jobs, receiver) = mpsc::channel();
    let (is_alive, alive) = watch::channel(());
    let run = move || {
        // Dropped in reverse order: nobody can send to a writer that is known to have ended.
        let (_is_alive, receiver) = (is_alive, receiver);
        writer.run(&receiver);
    };
    let thread = std::thread::Builder::new().name("polynym-writer".to_owned()).spawn(run)?;
    Ok((jobs, alive, thread))
}

/// The processors of this machine.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
