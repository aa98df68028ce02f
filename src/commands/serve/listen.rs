//! The listeners of a server, for the API and for operators, and its access control.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use polynym::operators::{self, Pages, Readiness};
use polynym::telemetry::Metrics;
use polynym_access::{Access, RateLimits};
use polynym_cli::Failure;
use polynym_cli::config::{Serve, ServerAccess, ServerTls};
use polynym_transport::{Listener, Protocol, Tls, TlsFiles};
use tokio::net::TcpListener;

use super::metrics::{COUNTERS, OTHERS};

/// The access control of the settings.
pub fn access(settings: &ServerAccess) -> Result<Access, Failure> {
    match &settings.credentials {
        Some(file) => {
            let rate = RateLimits { calls: settings.caller_calls, misses: settings.caller_misses };
            Access::from_file(file.clone(), rate).map_err(Failure::Other)
        }
        None => Ok(Access::open()),
    }
}

/// The listener of the API.
pub async fn listen(settings: &ServerAccess) -> Result<Listener, Failure> {
    let tls = settings.tls.as_ref().map(|tls| encryption(tls, Protocol::Http2)).transpose()?;
    Ok(Listener { tcp: bind(&settings.listen, "--listen").await?, tls })
}

/// Serves the pages for operators, if configured, until the runtime stops.
pub async fn serve_operators(
    settings: &ServerAccess,
    access: &Arc<Access>,
    readiness: &Arc<Readiness>,
) -> Result<(), Failure> {
    let Some(addresses) = &settings.admin_listen else { return Ok(()) };
    let tcp = bind(addresses, "--admin-listen").await?;
    let address = tcp.local_addr().map_err(|error| Failure::Other(error.to_string()))?;
    let is_protected = !address.ip().to_canonical().is_loopback() && access.requires_credentials();
    let tls = match &settings.tls {
        Some(tls) if !address.ip().to_canonical().is_loopback() => {
            Some(encryption(&ServerTls { client_required: false, ..tls.clone() }, Protocol::Http1)?)
        }
        _ => None,
    };
    let metrics = Metrics::install(&COUNTERS, &OTHERS).map_err(Failure::Other)?;
    let pages = Pages {
        metrics: metrics.clone(),
        readiness: readiness.clone(),
        access: access.clone(),
        is_protected,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!("operators find /metrics, /healthz and /readyz on {scheme}://{address}");
    tokio::spawn(operators::serve(Listener { tcp, tls }, pages));
    tokio::spawn(async move { metrics.upkeep().await });
    Ok(())
}

fn encryption(settings: &ServerTls, protocol: Protocol) -> Result<Tls, Failure> {
    let ServerTls { certificate, key, client_ca, client_required } = settings.clone();
    let client_authorities = client_ca;
    let files = TlsFiles { certificate, key, client_authorities, client_required, protocol };
    Tls::from_files(files).map_err(|error| Failure::Other(format!("TLS cannot be used: {error}")))
}

async fn bind(addresses: &[SocketAddr], setting: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(addresses).await.map_err(|error| {
        let all = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Failure::Other(format!("cannot listen on {all} ({error}): choose another with {setting}"))
    })
}

/// Warns of missing protections. A server for tests needs none on a loopback address.
pub fn warn_if_exposed(address: SocketAddr, settings: &Serve) {
    let Serve { access, ephemeral, .. } = settings;
    let is_loopback = address.ip().to_canonical().is_loopback();
    match (access.tls.is_some(), access.credentials.is_some()) {
        _ if is_loopback && *ephemeral => {}
        (_, false) if is_loopback => tracing::warn!(
            "no credentials are required: every user of this machine may read and change \
             everything"
        ),
        (false, false) => tracing::warn!(
            "no encryption and no credentials: anybody who reaches {address} may read and change \
             everything"
        ),
        (true, false) => tracing::warn!(
            "no credentials are required: anybody who reaches {address} may read and change \
             everything"
        ),
        (false, true) if !is_loopback => tracing::warn!(
            "no encryption: anybody who sees the traffic to {address} can read tokens and users"
        ),
        _ => {}
    }
}

/// Prints the address and a first call to try. A server for tests prints only its address, as JSON.
/// A closed standard output is not an error.
pub fn announce(address: SocketAddr, settings: &Serve) {
    let Serve { access, sample, ephemeral, .. } = settings;
    let mut out = std::io::stdout().lock();
    let scheme = if access.tls.is_some() { "https" } else { "http" };
    if *ephemeral {
        let _ = writeln!(out, r#"{{"grpc":"{address}"}}"#);
    } else {
        let _ = writeln!(out, "listening on {scheme}://{address}");
    }
    if *sample && !ephemeral && access.tls.is_none() && access.credentials.is_none() {
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
