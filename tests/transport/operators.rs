//! The listener for operators: metrics, health, its protection and its bounds.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use polynym_store_common::operations::Operation;
use regex::Regex;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DEFAULT_VERSIONS, RootCertStore, StreamOwned, crypto::ring,
};

use crate::scrape::{documented, free_address, kinds, metrics, page, request};
use crate::server::{Server, polynym, until};
use crate::support::tls::Authority;

/// Metrics of a store on MongoDB; tests of a cluster and of the cache check them.
const MONGODB: [&str; 8] = [
    "polynym_shared_call_items",
    "polynym_lookup_cache_lookups_total",
    "polynym_lookup_cache_age_seconds",
    "polynym_lookup_cache_bytes",
    "polynym_mongodb_connections",
    "polynym_store_partly_away",
    "polynym_store_became_shard",
    "polynym_mongodb_uri_broken",
];
/// Metrics of changed files.
const CHANGED: [&str; 2] = ["polynym_certificate_broken", "polynym_credentials_broken"];

fn token(authority: &Authority, name: &str, role: &str) -> (String, PathBuf) {
    let credentials = authority.path("callers.toml");
    let arguments = ["token", "create", name, "--role", role, "--tenants", "*"];
    let output = polynym(&arguments).args(["--credentials", &credentials]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let token = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    let file = PathBuf::from(authority.path(&format!("{name}.token")));
    fs::write(&file, &token).unwrap();
    (token, file)
}

/// A server with TLS, credentials and a port for operators.
fn serve(authority: &Authority, operators: &str) -> Server {
    let file = |name| authority.path(name);
    Server::start(&[
        "--sample",
        "--admin-listen",
        operators,
        "--tls-cert",
        &file("server.pem"),
        "--tls-key",
        &file("server.key"),
        "--credentials",
        &file("callers.toml"),
    ])
}

fn run(server: &Server, authority: &Authority, token: &Path, arguments: &[&str]) -> bool {
    let (ca, token) = (authority.path("ca.pem"), token.to_str().unwrap());
    let more = ["--ca", &ca, "--token-file", token];
    server.run(&[arguments, &more[..]].concat()).status.success()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn names(kinds: &BTreeSet<(String, String)>) -> BTreeSet<&str> {
    kinds.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn served_documented_and_drawn_metrics_agree() {
    let authority = Authority::new();
    let (_, admin) = token(&authority, "ops", "admin");
    let (_, resolver) = token(&authority, "billing", "resolver");
    let address = free_address();
    let server = serve(&authority, &address.to_string());
    assert!(run(&server, &authority, &resolver, &["resolve", "handle:joe"]));
    assert!(!run(&server, &authority, &resolver, &["user", "create", "--name", "X"]));
    assert!(run(&server, &authority, &admin, &["user", "create", "--name", "X"]));
    token(&authority, "later", "resolver");
    fs::copy(Authority::new().path("server.pem"), authority.path("server.pem")).unwrap();
    let begun = Instant::now();
    let scraped = loop {
        let scraped = metrics(address);
        if CHANGED.iter().all(|name| scraped.contains(name)) {
            break scraped;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{scraped}");
        std::thread::sleep(Duration::from_millis(200));
    };

    for line in [
        r#"polynym_calls_total{method="ResolveIdentity",code="OK",caller="billing"} 1"#,
        r#"polynym_calls_total{method="CreateUser",code="PERMISSION_DENIED",caller="billing"} 1"#,
        r#"polynym_calls_total{method="CreateUser",code="OK",caller="ops"} 1"#,
        r#"polynym_rejected_total{cause="ROLE_DENIED"} 1"#,
        r#"polynym_call_seconds_count{method="ResolveIdentity"} 1"#,
        r#"polynym_call_permits{kind="look-up"} 1024"#,
        r#"polynym_calls_under_way{kind="mutation"} 0"#,
        r#"polynym_store_operations_total{operation="resolve",outcome="ok"} 1"#,
        r#"polynym_tls_handshakes_total{outcome="ok"} 3"#,
        "polynym_certificate_broken 1",
        "polynym_credentials_broken 0",
    ] {
        assert!(scraped.lines().any(|served| served == line), "{line} is not in\n{scraped}");
    }
    assert!(!scraped.contains("joe") && !scraped.contains("default"), "{scraped}");

    let (served, documented) = (kinds(&scraped), documented());
    for (name, _) in &served {
        assert!(scraped.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
    assert_eq!(names(&documented).len(), documented.len());
    let here: BTreeSet<_> =
        documented.iter().filter(|(name, _)| !MONGODB.contains(&name.as_str())).cloned().collect();
    assert_eq!(served, here, "served, and documented");

    let metric = Regex::new("(?:polynym|process)_[a-z_]+").unwrap();
    for path in ["deploy/grafana.json", "deploy/prometheus-rules.yaml", "docs/runbook.md"] {
        let text = read(path);
        let base = |name: &str| {
            let ends = ["_bucket", "_sum", "_count"];
            let end = ends.iter().find_map(|end| name.strip_suffix(end));
            end.filter(|base| names(&documented).contains(base)).unwrap_or(name).to_owned()
        };
        let used: BTreeSet<_> = metric.find_iter(&text).map(|found| base(found.as_str())).collect();
        let unknown: Vec<_> =
            used.iter().filter(|name| !names(&documented).contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
        if path.ends_with("json") {
            let drawn: BTreeSet<_> = used.iter().map(String::as_str).collect();
            assert_eq!(drawn, names(&documented), "drawn, and documented");
        }
    }
}

/// The value of a metric without labels.
fn value(scraped: &str, name: &str) -> f64 {
    let line = scraped.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in\n{scraped}")).parse().unwrap()
}

#[test]
fn metrics_of_the_process_are_those_of_the_system() {
    let address = free_address();
    let begun = SystemTime::now();
    let server = Server::start(&["--sample", "--admin-listen", &address.to_string()]);
    assert!(server.run(&["user", "list"]).status.success());
    let of_system = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", server.id()));
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count() as f64;
    let idle = descriptors();
    // More than are counted: a call may have been open still.
    let open: Vec<_> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    until(|| descriptors() >= idle + 40.0);

    let scraped = metrics(address);
    let fds = value(&scraped, "process_open_fds");
    assert!((idle + 40.0..idle + 80.0).contains(&fds), "{fds}, where {idle} were open");
    drop(open);
    let limits = of_system("limits").unwrap();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let limit: f64 = limit.split_whitespace().next().unwrap().parse().unwrap();
    assert_eq!(value(&scraped, "process_max_fds"), limit);
    let memory = value(&scraped, "process_resident_memory_bytes");
    assert!(memory > server.memory() as f64 / 2.0 && memory < 4e9, "{memory}");
    let start = value(&scraped, "process_start_time_seconds");
    let [first, last] = [begun, SystemTime::now()]
        .map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64());
    assert!((first..=last).contains(&start), "{first} {start} {last}");

    let used = value(&scraped, "process_cpu_seconds_total");
    assert!(used > 0.0 && used < 600.0, "{used}");
    until(|| {
        assert!(server.run(&["user", "list"]).status.success());
        value(&metrics(address), "process_cpu_seconds_total") > used
    });
}

#[test]
fn free_space_is_that_of_the_disk() {
    let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
    let store = format!("embedded:{}", folder.path().display());
    let server = Server::start(&["--store", &store, "--admin-listen", &address.to_string()]);
    assert!(server.run(&["user", "create", "--name", "X"]).status.success());
    let df = Command::new("df")
        .args(["--block-size=1", "--output=size,avail"])
        .arg(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(df.stdout).unwrap();
    let line = text.lines().last().unwrap();
    let of_system: Vec<f64> = line.split_whitespace().map(|text| text.parse().unwrap()).collect();
    let scraped = metrics(address);
    let size = value(&scraped, "polynym_store_disk_bytes");
    assert_eq!(size, of_system[0]);
    let free = value(&scraped, "polynym_store_disk_free_bytes");
    // Other tests write to the disk meanwhile.
    assert!((free - of_system[1]).abs() < 4e9 && free <= size, "{free}: {text}");
    let allocated = value(&scraped, "polynym_store_file_allocated_bytes");
    assert!(allocated > 0.0, "{allocated}");
}

/// Every expression of the dashboard is of the chosen jobs and servers.
#[test]
fn the_dashboard_shows_what_is_chosen() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("deploy/grafana.json")).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<_> = variables.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    let selected = Regex::new(r#"(?:polynym|process)_[a-z_]+(.{0,34})"#).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut count = 0;
    for expression in targets.map(|target| target["expr"].as_str().unwrap()) {
        for found in selected.captures_iter(expression) {
            let choice = r#"{job=~"$job", instance=~"$instance""#;
            assert!(choice.starts_with(&found[1]) && found[1].len() > 30, "{expression}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn operations_of_the_store_are_documented() {
    let (docs, dashboard) = (read("docs/metrics.md"), read("deploy/grafana.json"));
    let (_, table) = docs.split_once("\n## Operations of the store\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let documented: Vec<_> = rows.skip(1).collect();
    let names = Operation::ALL.map(Operation::name);
    assert_eq!(documented, names);
    let chosen = Regex::new(r#"operation=~\\"([a-z_|]+)\\""#).unwrap();
    let drawn: BTreeSet<_> =
        chosen.captures_iter(&dashboard).flat_map(|found| found.extract::<1>().1).collect();
    assert_eq!(drawn, ["inbox|bulk|delivery|usage|feed"].into());
    assert!(drawn.iter().flat_map(|all| all.split('|')).all(|name| names.contains(&name)));
}

#[test]
fn every_alert_has_a_paragraph() {
    let (rules, runbook) = (read("deploy/prometheus-rules.yaml"), read("docs/runbook.md"));
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.split_once("alert: ")).collect();
    let heads: Vec<_> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(alerts.len() > 10);
    assert_eq!(alerts.iter().map(|(_, name)| *name).collect::<Vec<_>>(), heads);
    let links = rules.matches("runbook_url: docs/runbook.md#").count();
    assert_eq!(links, alerts.len());
}

#[test]
fn health_reports_readiness() {
    let address = free_address();
    let server = Server::start(&["--sample", "--admin-listen", &address.to_string()]);
    assert_eq!(page(address, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(page(address, "/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(page(address, "/nothing").0, 404);
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn readiness_follows_the_store() {
    let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
    let store = format!("embedded:{}", folder.path().display());
    let server = Server::start(&["--store", &store, "--admin-listen", &address.to_string()]);
    let ready = || page(address, "/readyz");
    let gauge = |value: &str| metrics(address).contains(&format!("\npolynym_ready {value}\n"));
    let (file, moved) = (folder.path().join("directory.redb"), folder.path().join("moved.redb"));
    until(|| ready().0 == 200 && gauge("1"));

    fs::rename(&file, &moved).unwrap();
    until(|| ready() == (503, "the store does not answer\n".to_owned()));
    assert!(gauge("0"));
    until(|| !server.run(&["health"]).status.success());
    fs::rename(&moved, &file).unwrap();
    until(|| ready() == (200, "ready\n".to_owned()) && gauge("1"));
    until(|| server.run(&["health"]).status.success());
}

/// An encrypted connection to the port for operators.
fn connect(authority: &Authority, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(PathBuf::from(authority.path("ca.pem"))).unwrap();
    roots.add(ca).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(client, TcpStream::connect(address).unwrap())
}

#[test]
fn beyond_loopback_metrics_are_for_monitors_and_admins() {
    let authority = Authority::new();
    let (admin, _) = token(&authority, "ops", "admin");
    let (monitor, _) = token(&authority, "prometheus", "monitor");
    let others = ["resolver", "viewer", "registrar"].map(|role| token(&authority, role, role).0);
    let port = free_address().port();
    let _server = serve(&authority, &format!("0.0.0.0:{port}"));
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let ask = |path: &str, token: &str| {
        let header = if token.is_empty() { "" } else { "Authorization: Bearer " };
        let end = if token.is_empty() { "" } else { "\r\n" };
        request(&mut connect(&authority, address), path, &format!("{header}{token}{end}"))
    };
    assert_eq!(ask("/metrics", "").0, 401);
    assert_eq!(ask("/metrics", "pn_x_y").0, 401);
    for other in &others {
        let (status, text) = ask("/metrics", other);
        assert!(status == 403 && text.contains("the role monitor or admin"), "{text}");
    }
    assert_eq!(ask("/healthz", "").0, 200);
    assert_eq!(ask("/readyz", "").0, 200);
    for reader in [&monitor, &admin] {
        let (status, text) = ask("/metrics", reader);
        assert!(status == 200 && text.contains("polynym_build_info"), "{text}");
    }

    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn a_public_address_needs_protection() {
    let serve = |more: &[&str]| {
        let arguments = ["serve", "--sample", "--listen", "127.0.0.1:0"];
        let output = polynym(&[&arguments, more].concat()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let error = serve(&["--admin-listen", "0.0.0.0:0"]);
    assert!(error.contains("--admin-listen") && error.contains("TLS and credentials"), "{error}");
    let error = serve(&["--admin-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    assert!(error.contains("an alias"), "{error}");
}

#[test]
fn partial_requests_block_no_client() {
    let address = free_address();
    let server = Server::start(&["--sample", "--admin-listen", &address.to_string()]);
    // An answer to a call: only then the server has built all its tables.
    assert!(server.run(&["user", "list"]).status.success());
    let before = server.memory();
    let half: Vec<_> = (0..500)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ").unwrap();
            stream
        })
        .collect();
    assert_eq!(page(address, "/healthz").0, 200);
    let begun = Instant::now();
    let mut open = half.iter().collect::<Vec<_>>();
    while !open.is_empty() {
        open.retain(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let read = (&mut &**stream).read(&mut [0; 100]);
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        });
        assert!(begun.elapsed() < Duration::from_secs(60), "{} are open", open.len());
    }
    let more = server.memory().saturating_sub(before);
    assert!(more < 500 * (40 << 10), "{more} bytes");
}
