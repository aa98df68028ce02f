//! The listeners of a server, for the API and for operators, and its access control.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use polynym::http::api;
use polynym::operators::{self, Pages};
use polynym::readiness::Readiness;
use polynym::settings::{ClientAuth, Serve, ServerAccess, ServerTls};
use polynym::telemetry::Metrics;
use polynym_access::{Access, RateLimits};
use polynym_cli::Failure;
use polynym_console::{self as console, Console};
use polynym_transport::http::Site;
use polynym_transport::{Cores, Listener, Listeners, Protocol, Tls, TlsFiles, in_memory};
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

/// The metrics of this process, if something shows them: the pages for operators, or the console.
/// Keeps them up until the runtime stops.
pub async fn record_metrics(settings: &ServerAccess) -> Result<Option<Metrics>, Failure> {
    if settings.admin_listen.is_none() && !settings.http.console {
        return Ok(None);
    }
    let metrics = Metrics::install(&COUNTERS, &OTHERS).map_err(Failure::Other)?;
    let kept = metrics.clone();
    tokio::spawn(async move { kept.upkeep().await });
    Ok(Some(metrics))
}

/// The listeners of the API.
pub async fn listen(
    settings: &ServerAccess,
    access: &Arc<Access>,
    metrics: Option<&Metrics>,
    cores: Cores,
) -> Result<Listeners, Failure> {
    let tls = |protocol| encryption(&settings.tls, protocol);
    let tcp = bind(&settings.listen, "--listen").await?;
    let grpc = Listener { tcp, tls: tls(Protocol::Http2)? };
    let http = &settings.http;
    let Some(addresses) = &http.http_listen else {
        return Ok(Listeners { cores, ..grpc.into() });
    };
    let tcp = bind(addresses, "--http-listen").await?;
    let (connector, in_memory) = in_memory();
    let site = http.console.then(|| {
        let (prefix, hosts) = (http.http_prefix.clone(), http.console_host.clone());
        let access = access.clone();
        let is_tls = settings.tls.is_on() || settings.behind_proxy;
        let metrics = metrics.cloned();
        let metrics = Box::new(move || metrics.as_ref().map(Metrics::render).unwrap_or_default());
        let options = console::Options { prefix, access, connector, hosts, is_tls, metrics };
        Box::new(Console::new(options)) as Box<dyn Site>
    });
    let in_memory = site.is_some().then_some(in_memory);
    let served = api(http.http_prefix.clone(), http.http_allow_origin.clone(), site);
    let http = Some((Listener { tcp, tls: tls(Protocol::Any)? }, served));
    Ok(Listeners { grpc, http, in_memory, cores })
}

/// The addresses of listeners: that of gRPC, and that of HTTP.
pub fn addresses(listeners: &Listeners) -> Result<(SocketAddr, Option<SocketAddr>), Failure> {
    let failure = |error: io::Error| Failure::Other(error.to_string());
    let http = listeners.http.as_ref().map(|(listener, _)| listener.tcp.local_addr());
    Ok((listeners.grpc.tcp.local_addr().map_err(failure)?, http.transpose().map_err(failure)?))
}

/// Serves the pages for operators, if configured, until the runtime stops.
pub async fn serve_operators(
    settings: &ServerAccess,
    access: &Arc<Access>,
    readiness: &Arc<Readiness>,
    metrics: Option<Metrics>,
) -> Result<(), Failure> {
    let Some((addresses, metrics)) = settings.admin_listen.as_ref().zip(metrics) else {
        return Ok(());
    };
    let tcp = bind(addresses, "--admin-listen").await?;
    let address = tcp.local_addr().map_err(|error| Failure::Other(error.to_string()))?;
    let is_protected = !address.ip().to_canonical().is_loopback() && access.requires_credentials();
    let tls = match address.ip().to_canonical().is_loopback() {
        true => None,
        false => {
            let optional =
                ServerTls { tls_client_auth: ClientAuth::Optional, ..settings.tls.clone() };
            encryption(&optional, Protocol::Http1)?
        }
    };
    let pages =
        Pages { metrics, readiness: readiness.clone(), access: access.clone(), is_protected };
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!("operators find /metrics, /healthz and /readyz on {scheme}://{address}");
    tokio::spawn(operators::serve(Listener { tcp, tls }, pages));
    Ok(())
}

/// The encryption of connections, if there is a certificate.
fn encryption(settings: &ServerTls, protocol: Protocol) -> Result<Option<Tls>, Failure> {
    let ServerTls { tls_cert, tls_key, tls_client_ca: client_authorities, tls_client_auth } =
        settings.clone();
    let Some((certificate, key)) = tls_cert.zip(tls_key) else { return Ok(None) };
    let client_required = tls_client_auth == ClientAuth::Required;
    let files = TlsFiles { certificate, key, client_authorities, client_required, protocol };
    Tls::from_files(files)
        .map(Some)
        .map_err(|error| Failure::Other(format!("TLS cannot be used: {error}")))
}

async fn bind(addresses: &[SocketAddr], setting: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(addresses).await.map_err(|error| {
        let all = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Failure::Other(format!("cannot listen on {all} ({error}): choose another with {setting}"))
    })
}

/// Warns of missing protections. A server for tests needs none on a loopback address.
pub fn warn_if_exposed(grpc: SocketAddr, http: Option<SocketAddr>, settings: &Serve) {
    let Serve { access, ephemeral, .. } = settings;
    let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    let address = [grpc].into_iter().chain(http).find(|one| !is_local(one)).unwrap_or(grpc);
    let is_loopback = is_local(&address);
    match (access.tls.is_on(), access.credentials.is_some()) {
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

/// Prints the addresses and first calls to try. A server for tests prints only its addresses, as
/// JSON. A closed standard output is not an error.
pub fn announce((address, http): (SocketAddr, Option<SocketAddr>), settings: &Serve) {
    let Serve { access, sample, ephemeral, .. } = settings;
    let mut out = io::stdout().lock();
    if *ephemeral {
        let http = http.map_or_else(String::new, |http| format!(r#","http":"{http}""#));
        let _ = writeln!(out, r#"{{"grpc":"{address}"{http}}}"#);
        let _ = out.flush();
        return;
    }
    let scheme = if access.tls.is_on() { "https" } else { "http" };
    let prefix = &access.http.http_prefix;
    let _ = writeln!(out, "listening on {scheme}://{address}");
    if let Some(http) = http {
        let _ = writeln!(out, "HTTP and JSON on {scheme}://{http}{prefix}");
        if access.http.console {
            let _ = writeln!(out, "console on {scheme}://{http}{prefix}/console");
        }
    }
    if *sample && !access.tls.is_on() && access.credentials.is_none() {
        let _ = writeln!(out, "{}", suggestions(address));
        let _ = match http {
            Some(http) => writeln!(out, "{}", http_suggestion(http, prefix)),
            None => writeln!(out, "{NO_HTTP}"),
        };
    }
    let _ = out.flush();
}

/// The remedy of a server with made-up users without the console and HTTP.
const NO_HTTP: &str =
    "For the console, and for HTTP and JSON, add --http-listen 127.0.0.1:7180 to this command";

fn suggestions(address: SocketAddr) -> String {
    let server = match address.to_string().as_str() {
        "127.0.0.1:7171" => String::new(),
        other => format!(" --server http://{other}"),
    };
    format!(
        "Try these in another terminal:
  polynym resolve{server} email:joe.smith@example.com handle:joe social:github/583231
  polynym find{server} 'joe smith'
  grpcurl -plaintext -d '{{\"identifier\":{{\"handle\":\"joe\"}}}}' \\
    {address} polynym.v1.DirectoryService/ResolveIdentity"
    )
}

fn http_suggestion(address: SocketAddr, prefix: &str) -> String {
    format!(
        "  curl -d '{{\"identifier\":{{\"email\":\"joe.smith@example.com\"}}}}' \\
    -H 'content-type: application/json' \\
    http://{address}{prefix}/polynym.v1.DirectoryService/ResolveIdentity"
    )
}
