//! `polynym serve`: picks the store, runs the server until it is stopped, and shuts down cleanly.

mod signals;

use std::future::pending;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use polynym::access::{Access, CREDENTIALS_BROKEN, Rate};
use polynym::cli::Failure;
use polynym::config::{Flags, LogFormat, MongoUri, Serve, ServerAccess, ServerTls, StoreChoice};
use polynym::directory::{CLOCK_AHEAD, DISPLACED, Directory, Limits, Store};
use polynym::store::coalesce::{self, Coalesced};
use polynym::store::embedded::{self, Embedded};
use polynym::store::mongo::{self, Mongo};
use polynym::transport::{CERTIFICATE_BROKEN, Listener, Tls, TlsFiles};
use polynym::{grpc, identifier, sample, telemetry, transport};
use signals::Stop;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The time that the disk has to finish writes once the server has stopped.
const CLOSING: Duration = Duration::from_secs(10);
const DISK_HANGS: &str = "the disk has not finished what was under way within 10 s: mutations that \
    were not answered may have happened or not, and everything that was answered is there; see to \
    the disk and start the server again";
const WRITER_ENDED: &str = "the embedded store's writer has ended by a fault of this program, \
    which the log tells; what was answered is on the disk: start the server again";

/// Runs a server until SIGTERM or Ctrl-C.
///
/// # Errors
/// Where it cannot start.
pub fn run(flags: &Flags<Serve>) -> Result<(), Failure> {
    let settings = flags.load()?;
    let json = settings.log_format == LogFormat::Json;
    telemetry::init(json, &settings.log).map_err(|error| Failure::Other(error.to_string()))?;
    let runtime = runtime(settings.threads)?;
    let access = Arc::new(access(&settings.access)?);
    let listener = runtime.block_on(listen(&settings.access))?;
    if let Some(address) = settings.metrics_listen {
        let _runtime = runtime.enter();
        telemetry::serve_metrics(
            address,
            &[DISPLACED, transport::PANICS],
            &[CLOCK_AHEAD, CREDENTIALS_BROKEN, CERTIFICATE_BROKEN],
        )
        .map_err(Failure::Other)?;
    }

    // Signals count from here on: from here on there is something to tidy up.
    let stop = Stop::new()?;
    let place = StoreLocation::new(&settings.store)?;
    stop.remove_at_once(place.temporary());
    let opened = runtime.block_on(async {
        tokio::select! {
            kept = OpenStore::open(&place, &settings) => kept.map(Some),
            () = stop.signalled() => Ok(None),
        }
    });
    let Some(kept) = opened? else {
        // The disk may take its time: until a store is open, ending the program changes nothing in
        // it.
        runtime.shutdown_background();
        tracing::info!("stopped before the store was open");
        return Ok(());
    };

    let store = kept.store(settings.coalesce);
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = serve(&settings, stop, listener, access, store) => outcome,
            () = kept.writer_ended() => Err(Failure::Other(WRITER_ENDED.to_owned())),
        }
    });
    runtime.block_on(kept.close());
    // The runtime must end before the store is closed: closing waits for the writer.
    runtime.shutdown_timeout(Duration::from_secs(1));
    close(kept)?;
    tracing::info!("stopped");

    outcome
}

/// Waits until the store is closed, but not for a disk that hangs.
fn close(kept: OpenStore) -> Result<(), Failure> {
    let (closing, closed) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        drop(kept);
        drop(closing);
    });
    match closed.recv_timeout(CLOSING) {
        Err(RecvTimeoutError::Timeout) => Err(Failure::Other(DISK_HANGS.to_owned())),
        _ => Ok(()),
    }
}

/// The location of the store; a temporary folder is removed with it.
enum StoreLocation<'s> {
    Folder(&'s Path),
    Temporary(TempDir),
    Mongo(&'s MongoUri),
}

impl<'s> StoreLocation<'s> {
    fn new(store: &'s StoreChoice) -> Result<Self, Failure> {
        match store {
            StoreChoice::Embedded(folder) => Ok(Self::Folder(folder)),
            StoreChoice::Mongo(uri) => Ok(Self::Mongo(uri)),
            StoreChoice::Temporary => {
                let made = tempfile::Builder::new().prefix("polynym-sample-").tempdir();
                let made = made.map_err(|error| {
                    Failure::Other(format!("cannot make a temporary folder: {error}"))
                })?;
                Ok(Self::Temporary(made))
            }
        }
    }

    fn temporary(&self) -> Option<&Path> {
        match self {
            Self::Temporary(folder) => Some(folder.path()),
            Self::Folder(_) | Self::Mongo(_) => None,
        }
    }
}

/// The store that is served.
enum OpenStore {
    Embedded(Arc<Embedded>),
    Mongo(Arc<Mongo>),
}

impl OpenStore {
    async fn open(place: &StoreLocation<'_>, settings: &Serve) -> Result<Self, Failure> {
        let folder = match place {
            StoreLocation::Folder(folder) => folder,
            StoreLocation::Temporary(folder) => folder.path(),
            StoreLocation::Mongo(uri) => {
                let options = mongo::Options {
                    timeout: settings.call_timeout,
                    hint_bytes: settings.hint_bytes,
                };
                let opened = Mongo::open(uri.as_str(), options).await;
                let opened = opened.map_err(|error| Failure::Other(format!("{uri}: {error}")))?;
                return Ok(Self::Mongo(Arc::new(opened)));
            }
        };
        let group_limit =
            if settings.group_commit { embedded::Options::default().group_limit } else { 1 };
        let create = settings.create || settings.sample;
        let Serve { cache_bytes, hint_bytes, .. } = *settings;
        let options = embedded::Options { cache_bytes, hint_bytes, group_limit, create };
        let folder = folder.to_owned();
        let opened = tokio::task::spawn_blocking(move || Embedded::open(&folder, options)).await;
        let opened = opened
            .map_err(|error| Failure::Other(format!("the store cannot be opened: {error}")))?;

        Ok(Self::Embedded(Arc::new(opened.map_err(|error| Failure::Other(error.to_string()))?)))
    }

    /// The store that the directory uses. Sharing look-ups pays only if they go to another machine.
    fn store(&self, coalesce: bool) -> Arc<dyn Store> {
        match self {
            Self::Mongo(store) if coalesce => {
                let coalesced = Coalesced::new(store.clone(), coalesce::Options::default());
                Arc::new(coalesced.with_hasty(store.hasty()))
            }
            Self::Mongo(store) => store.clone(),
            Self::Embedded(store) => store.clone(),
        }
    }

    /// Returns where the store can take no mutations any more.
    async fn writer_ended(&self) {
        match self {
            Self::Embedded(store) => store.writer_ended().await,
            Self::Mongo(_) => pending().await,
        }
    }

    /// Waits for what is under way though its callers have left, and parts from the servers. The
    /// embedded store does what there is to do when it is dropped.
    async fn close(&self) {
        if let Self::Mongo(store) = self {
            store.close().await;
        }
    }
}

fn runtime(threads: usize) -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.map_err(|error| Failure::Other(format!("cannot start the threads: {error}")))
}

async fn serve(
    settings: &Serve,
    stop: Stop,
    listener: Listener,
    access: Arc<Access>,
    store: Arc<dyn Store>,
) -> Result<(), Failure> {
    let address = listener.tcp.local_addr().map_err(|error| Failure::Other(error.to_string()))?;
    // The first call must not wait for tables that are built on first use. A build without
    // optimization takes a second for them: tests start such servers by the hundred, and few of
    // these ever see a phone number.
    if !cfg!(debug_assertions) {
        identifier::warm_up();
    }
    if settings.sample {
        load_sample(&*store).await?;
    }

    warn_if_exposed(address, &settings.access);
    announce(address, listener.tls.is_some(), settings.sample);
    let directory = Directory::new(store, Generator::new(Mode::Variable), limits(settings));
    let directory = Arc::new(if settings.closed_tenants { directory.closed() } else { directory });
    let stopped = async move { stop.signalled().await };
    let serving = grpc::serve(listener, directory.clone(), access, options(settings), stopped);
    let served = tokio::select! {
        served = serving => served,
        never = directory.run_expiry() => match never {},
        never = directory.delete_marked_tenants() => match never {},
    };

    served.map_err(|error| Failure::Other(format!("the server failed: {error}")))
}

/// The callers that are let in.
fn access(settings: &ServerAccess) -> Result<Access, Failure> {
    match &settings.credentials {
        Some(file) => {
            let rate = Rate { calls: settings.caller_calls, misses: settings.caller_misses };
            Access::from_file(file.clone(), rate).map_err(Failure::Other)
        }
        None => Ok(Access::open()),
    }
}

async fn listen(settings: &ServerAccess) -> Result<Listener, Failure> {
    let tls = match &settings.tls {
        Some(files) => {
            let tls = Tls::from_files(tls_files(files));
            Some(tls.map_err(|fault| Failure::Other(format!("TLS cannot be used: {fault}")))?)
        }
        None => None,
    };
    Ok(Listener { tcp: bind(&settings.listen).await?, tls })
}

fn tls_files(settings: &ServerTls) -> TlsFiles {
    let ServerTls { certificate, key, client_ca, client_required } = settings.clone();
    TlsFiles { certificate, key, client_authorities: client_ca, client_required }
}

async fn bind(addresses: &[SocketAddr]) -> Result<TcpListener, Failure> {
    let all = || addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    TcpListener::bind(addresses).await.map_err(|error| {
        Failure::Other(format!(
            "cannot listen on {} ({error}): choose another with --listen",
            all()
        ))
    })
}

async fn load_sample(store: &dyn Store) -> Result<(), Failure> {
    let (loaded, refused) =
        sample::load(store).await.map_err(|error| Failure::Other(error.to_string()))?;
    tracing::info!(loaded, "made-up users");
    if refused > 0 {
        tracing::warn!(refused, "made-up users left out: other users have their identifiers");
    }
    Ok(())
}

fn limits(settings: &Serve) -> Limits {
    Limits {
        batch: settings.max_batch,
        identities: settings.max_identities,
        attributes: settings.max_attributes,
        holds: settings.max_holds,
        merged: settings.max_merged,
        bytes: settings.max_user_bytes,
    }
}

fn options(settings: &Serve) -> transport::Options {
    transport::Options {
        call_timeout: settings.call_timeout,
        max_calls: settings.max_calls,
        max_connections: settings.max_connections,
        connection_age: settings.connection_age,
        connection_idle: settings.connection_idle,
        drain: settings.drain,
        task_per_call: !matches!(settings.store, StoreChoice::Mongo(_)),
    }
}

fn warn_if_exposed(address: SocketAddr, access: &ServerAccess) {
    let is_loopback = address.ip().to_canonical().is_loopback();
    match (access.tls.is_some(), access.credentials.is_some()) {
        (_, false) if is_loopback => tracing::warn!(
            "no credentials are asked for: every user of this machine may read and change \
             everything"
        ),
        (false, false) => tracing::warn!(
            "no encryption and no credentials: whoever reaches {address} may read and change \
             everything"
        ),
        (true, false) => tracing::warn!(
            "no credentials are asked for: whoever reaches {address} may read and change everything"
        ),
        (false, true) if !is_loopback => tracing::warn!(
            "no encryption: whoever sees the traffic to {address} can read tokens and users"
        ),
        _ => {}
    }
}

/// Prints the address and a first call to try. A closed standard output is not an error.
fn announce(address: SocketAddr, tls: bool, sample: bool) {
    let mut out = std::io::stdout().lock();
    let scheme = if tls { "https" } else { "http" };
    let _ = writeln!(out, "listening on {scheme}://{address}");
    if sample && !tls {
        let _ = writeln!(out, "{}", suggestions(address));
    }
    let _ = out.flush();
}

fn suggestions(address: SocketAddr) -> String {
    let server = match address.to_string().as_str() {
        "127.0.0.1:7171" => String::new(),
        other => format!(" --server http://{other}"),
    };
    format!(
        "Try these in another terminal:
  polynym resolve{server} email:joe.smith@example.com handle:joe social:github/583231
  polynym identity normalize{server} 'phone/US:(415) 555-2671'
  grpcurl -plaintext -d '{{\"identifier\":{{\"handle\":\"joe\"}}}}' \\
    {address} polynym.v1.DirectoryService/ResolveIdentity"
    )
}
