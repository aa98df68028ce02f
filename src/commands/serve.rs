//! `polynym serve`: opens the store, runs the server until a signal, and shuts down cleanly.

mod listen;
mod metrics;
mod open_store;
mod parent;
mod runtimes;
mod service_manager;
mod signals;
mod uri_file;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use polynym::grpc;
use polynym::readiness::Readiness;
use polynym::sample;
use polynym::settings::{
    LogCalls, LogFormat, Serve, StoreChoice, StoreSettings, Telemetry, Tenants,
};
use polynym::telemetry;
use polynym_access::Access;
use polynym_cli::Failure;
use polynym_cli::config::Flags;
use polynym_deliver::AddressPolicy;
use polynym_directory::{Backend, Directory, EventFeed, Limits};
use polynym_identifier as identifier;
use polynym_transport as transport;
use polynym_transport::Listeners;

use listen::{
    access, addresses, announce, listen, record_metrics, serve_operators, warn_if_exposed,
};
use open_store::{OpenStore, StoreLocation};
use runtimes::Runtimes;
use service_manager::ServiceManager;
use signals::Stop;

/// The time for the disk to finish writes after the server stopped.
const STORE_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for the collector to accept the last traces.
const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
const DISK_HANGS: &str = "the disk did not finish its writes within 10 s: mutations without an \
    answer may have succeeded, and mutations with an answer are stored; check the disk and start \
    the server again";
const WRITER_ENDED: &str = "the embedded store's writer failed by an error of this program, \
    which is in the log; mutations with an answer are on the disk: start the server again";

/// Runs a server until SIGTERM or Ctrl-C. A server for tests also ends with the program that
/// started it.
///
/// # Errors
/// The server cannot start, or failed.
pub fn run(flags: &Flags<Serve>) -> Result<(), Failure> {
    let settings = flags.load()?;
    let json = settings.telemetry.log_format == LogFormat::Json;
    telemetry::init(json, &settings.telemetry.log, settings.telemetry.log_reads)
        .map_err(|error| Failure::Other(error.to_string()))?;
    let runtimes = Runtimes::start(settings.threads)?;
    let runtime = &runtimes.main;
    let access = Arc::new(access(&settings.access)?);
    let metrics = runtime.block_on(record_metrics(&settings.access))?;
    let cores = runtimes.cores().cloned().collect();
    let listeners = runtime.block_on(listen(&settings.access, &access, metrics.as_ref(), cores))?;
    let readiness = Arc::default();
    runtime.block_on(serve_operators(&settings.access, &access, &readiness, metrics))?;

    let traces = {
        let _runtime = runtime.enter();
        traces(&settings)?
    };

    // A signal must not leave the files that are made below.
    let stop = Stop::new(settings.ephemeral)?;
    let location = StoreLocation::new(&settings.location.store)?;
    stop.remove_at_once(location.temporary());
    let opened = runtime.block_on(async {
        tokio::select! {
            store = OpenStore::open(&location, &settings, runtimes.cores()) => store.map(Some),
            () = stop.signalled() => Ok(None),
        }
    });
    let Some(store) = opened? else {
        // Opening may take long on a slow disk. It changes nothing, so it can be aborted.
        runtimes.abandon();
        tracing::info!("stopped before the store was open");
        return Ok(());
    };

    let backend = store.backend(settings.coalesce);
    let outcome = runtime.block_on(async {
        let stops = (stop, &readiness);
        let serving = serve(&settings, stops, listeners, access, backend);
        tokio::select! {
            outcome = serving => outcome,
            () = store.writer_ended() => Err(Failure::Other(WRITER_ENDED.to_owned())),
            never = follow_uri(&settings, &store) => match never {},
        }
    });
    runtime.block_on(store.close());
    if let Some(traces) = traces {
        // The traces that the collector does not accept in time are lost.
        let _ = traces.shutdown_with_timeout(TRACE_FLUSH_TIMEOUT);
    }
    // Tasks must end before the store is closed: closing waits for the writer.
    runtimes.shut_down();
    close(store)?;
    tracing::info!("stopped");

    outcome
}

/// Follows the file with the URI of MongoDB, if there is one.
async fn follow_uri(settings: &Serve, store: &OpenStore) -> Infallible {
    let StoreSettings { store: choice, mongodb_uri_file } = &settings.location;
    uri_file::follow(mongodb_uri_file.as_deref(), choice.uri(), store).await
}

/// Exports traces, if there is a collector.
fn traces(settings: &Serve) -> Result<Option<SdkTracerProvider>, Failure> {
    let Telemetry { otlp, otlp_sample, .. } = &settings.telemetry;
    let traces = telemetry::export_traces(otlp.as_deref(), *otlp_sample);
    let traces = traces.map_err(Failure::Other)?;
    if let Some(traces) = &traces {
        transport::export_traces_to(traces.tracer("polynym"));
        opentelemetry::global::set_tracer_provider(traces.clone());
    }
    Ok(traces)
}

/// Waits until the store is closed, but not for a disk that hangs.
fn close(store: OpenStore) -> Result<(), Failure> {
    let (closing, closed) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        drop(store);
        drop(closing);
    });
    match closed.recv_timeout(STORE_CLOSE_TIMEOUT) {
        Err(RecvTimeoutError::Timeout) => Err(Failure::Other(DISK_HANGS.to_owned())),
        _ => Ok(()),
    }
}

async fn serve(
    settings: &Serve,
    (stop, readiness): (Stop, &Arc<Readiness>),
    listeners: Listeners,
    access: Arc<Access>,
    backend: Backend,
) -> Result<(), Failure> {
    let (address, http) = addresses(&listeners)?;
    // The first call must not wait for lazily built tables. Debug builds take a second for them,
    // and tests start hundreds of servers, few of which ever parse a phone number.
    if !cfg!(debug_assertions) && !settings.ephemeral {
        identifier::warm_up();
    }
    if settings.sample {
        load_sample(&backend).await?;
    }

    let feed = backend.feed.clone();
    let directory = Directory::new(backend, Generator::new(Mode::Variable), limits(settings));
    let directory = Arc::new(match settings.tenants {
        Tenants::Closed => directory.closed(),
        Tenants::Open => directory,
    });
    // Before the address is printed: its reader may check readiness at once.
    readiness.opened(&directory).await;
    warn_if_exposed(address, http, settings);
    log_start((address, http), settings);
    announce((address, http), settings);
    let service_manager = ServiceManager::from_environment();
    service_manager.ready();
    let stopped = async {
        stop.signalled().await;
        service_manager.stopping();
        stop_being_ready(readiness, settings.drain_delay).await;
    };
    let serving = grpc::serve(
        listeners,
        directory.clone(),
        access,
        options(settings),
        AddressPolicy::new(settings.delivery_allow.clone()),
        readiness.clone(),
        stopped,
    );
    let served = tokio::select! {
        served = serving => served,
        never = warn_if_unwatched(&*feed) => match never {},
        never = directory.run_expiry() => match never {},
        never = directory.run_tenant_jobs() => match never {},
    };

    served.map_err(|error| Failure::Other(format!("the server failed: {error}")))
}

/// Records that the server stops, and returns after the time in which balancers learn it.
async fn stop_being_ready(readiness: &Readiness, drain_delay: Duration) {
    readiness.stopping();
    if !drain_delay.is_zero() {
        tracing::info!("not ready; calls are still served for {drain_delay:?}");
        tokio::time::sleep(drain_delay).await;
    }
}

/// Logs what was started: the version, the store and the addresses.
fn log_start((address, http): (SocketAddr, Option<SocketAddr>), settings: &Serve) {
    let store = match &settings.location.store {
        StoreChoice::Embedded(folder) => format!("embedded:{}", folder.display()),
        StoreChoice::Mongo(uri) => uri.to_string(),
        StoreChoice::Temporary => "temporary".to_owned(),
    };
    let operators = settings.access.admin_listen.iter().flatten().map(ToString::to_string);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        store,
        listen = %address,
        http_listen = http.map(tracing::field::display),
        admin_listen = operators.collect::<Vec<_>>().join(","),
        tls = settings.access.tls.is_on(),
        credentials = settings.access.credentials.is_some(),
        "started"
    );
}

/// Logs a warning if the events of the store cannot be watched.
async fn warn_if_unwatched(feed: &dyn EventFeed) -> Infallible {
    if let Err(error) = feed.position().await {
        tracing::warn!("events cannot be watched: {}", error.with_causes());
    }
    std::future::pending().await
}

async fn load_sample(store: &Backend) -> Result<(), Failure> {
    let (loaded, refused) =
        sample::load(store).await.map_err(|error| Failure::Other(error.to_string()))?;
    tracing::info!(loaded, "made-up users");
    if refused > 0 {
        tracing::warn!(refused, "made-up users rejected: other users have their identifiers");
    }
    Ok(())
}

fn limits(settings: &Serve) -> Limits {
    Limits {
        batch: settings.max_batch,
        identities: settings.max_identities,
        attributes: settings.max_attributes,
        elements: Limits::default().elements,
        holds: settings.max_holds,
        merged: settings.max_merged,
        bytes: settings.max_user_size,
        purge_events: Limits::default().purge_events,
        undone_users: Limits::default().undone_users,
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
        log_calls: match settings.telemetry.log_calls {
            LogCalls::None => transport::LogCalls::None,
            LogCalls::Sampled => transport::LogCalls::Sampled,
            LogCalls::All => transport::LogCalls::All,
        },
    }
}
