//! Clients' certificates as credentials.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use rcgen::{CertificateParams, DnType, SanType};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DEFAULT_VERSIONS, RootCertStore, StreamOwned, crypto::ring,
};

use crate::scrape::free_address;
use crate::server::{Server, polynym};
use crate::support::tls::Authority;

/// The time limit of each wait.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A certificate with these names, `uri:…` and `dns:…`.
fn named(names: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    for name in names {
        let (kind, name) = name.split_once(':').unwrap();
        params.subject_alt_names.push(match kind {
            "uri" => SanType::URI(name.try_into().unwrap()),
            _ => SanType::DnsName(name.try_into().unwrap()),
        });
    }
    params
}

fn entry(name: &str, role: &str, credential: &str) -> String {
    format!("[[caller]]\nname = \"{name}\"\nrole = \"{role}\"\ntenants = [\"*\"]\n{credential}\n\n")
}

/// A server that trusts the clients of an authority.
fn serve(authority: &Authority, callers: &str, mode: &str) -> Server {
    serve_with(authority, callers, mode, &["--drain=1s"])
}

fn serve_with(authority: &Authority, callers: &str, mode: &str, more: &[&str]) -> Server {
    fs::write(authority.path("callers.toml"), callers).unwrap();
    let file = |name| authority.path(name);
    let own = [
        "--sample",
        "--tls-cert",
        &file("server.pem"),
        "--tls-key",
        &file("server.key"),
        "--tls-client-ca",
        &file("ca.pem"),
        "--tls-client-auth",
        mode,
        "--credentials",
        &file("callers.toml"),
    ];
    Server::start(&[&own, more].concat())
}

/// A command's outcome with a certificate of the authority's folder: its output, or its error.
fn run(
    server: &Server,
    authority: &Authority,
    certificate: Option<&str>,
    command: &[&str],
) -> Result<String, String> {
    let file = |name: &str| authority.path(name);
    let mut arguments: Vec<_> = command.iter().map(ToString::to_string).collect();
    arguments.extend(["--ca".to_owned(), file("ca.pem")]);
    if let Some(name) = certificate {
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        arguments.extend(["--cert".to_owned(), certificate, "--key".to_owned(), key]);
    }
    let output = server.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

const RESOLVE: [&str; 2] = ["resolve", "handle:joe"];

#[test]
fn a_certificate_is_its_callers_credential() {
    let authority = Authority::new();
    let create = |name: &str| {
        let file = authority.path(&format!("{name}.toml"));
        let arguments = ["token", "create", name, "--role", "resolver", "--credentials", &file];
        let token = polynym(&arguments).output().unwrap().stdout;
        fs::write(authority.path(&format!("{name}.token")), token).unwrap();
        let text = fs::read_to_string(file).unwrap();
        text.lines().find(|line| line.starts_with("token")).unwrap().to_owned()
    };
    let (bound, free) = (create("bound"), create("free"));
    let callers = [
        entry("billing", "resolver", "certificate = \"uri:spiffe://corp/billing\""),
        entry("ops", "admin", "certificate = \"dns:ops.corp\""),
        entry("old", "admin", "certificate = \"dns:old.corp\"\nexpires = 2020-01-01T00:00:00Z"),
        entry("bound", "resolver", &format!("{bound}\ncertificate = \"dns:bound.corp\"")),
        entry("free", "resolver", &free),
    ];
    let server = serve(&authority, &callers.concat(), "optional");
    let token = |name| format!("--token-file={}", authority.path(&format!("{name}.token")));
    let outcome = |names: Option<&[&str]>, more: &str| {
        if let Some(names) = names {
            let mut params = named(names);
            // The subject names no caller.
            params.distinguished_name.push(DnType::CommonName, "ops.corp");
            authority.issue("client", params);
        }
        let command = RESOLVE.into_iter().chain(Some(more).filter(|m| !m.is_empty()));
        run(&server, &authority, names.map(|_| "client"), &command.collect::<Vec<_>>())
    };
    let good: [(Option<&[&str]>, &str); 4] = [
        (Some(&["uri:spiffe://corp/billing", "dns:other.corp"]), ""),
        (Some(&["dns:ops.corp"]), ""),
        (Some(&["dns:bound.corp"]), "bound"),
        (None, "free"),
    ];
    for (names, more) in good {
        let flag = if more.is_empty() { String::new() } else { token(more) };
        outcome(names, &flag).unwrap_or_else(|error| panic!("{names:?}: {error}"));
    }
    let wrong: [(Option<&[&str]>, &str); 9] = [
        (None, ""),
        (Some(&[]), ""),
        (Some(&["dns:other.corp"]), ""),
        (Some(&["uri:spiffe://corp/billing/x", "dns:*.corp"]), ""),
        (Some(&["uri:spiffe://corp/billing", "dns:ops.corp"]), ""),
        (Some(&["dns:old.corp"]), ""),
        (Some(&["dns:bound.corp"]), ""),
        (None, "bound"),
        (Some(&["dns:ops.corp"]), "free"),
    ];
    for (names, more) in wrong {
        let flag = if more.is_empty() { String::new() } else { token(more) };
        let error = outcome(names, &flag).expect_err(&format!("{names:?} {flag}"));
        assert!(error.contains("CREDENTIAL_INVALID"), "{names:?}: {error}");
    }
}

#[test]
fn foreign_and_expired_certificates_are_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let callers = entry("ops", "admin", "certificate = \"dns:ops.corp\"");
    for mode in ["optional", "required"] {
        let server = serve(&authority, &callers, mode);
        let attempt = |name| run(&server, &authority, name, &RESOLVE);
        authority.issue("client", named(&["dns:ops.corp"]));
        attempt(Some("client")).unwrap();

        let mut expired = named(&["dns:ops.corp"]);
        expired.not_after = (SystemTime::now() - Duration::from_secs(1)).into();
        authority.issue("client", expired);
        let error = attempt(Some("client")).unwrap_err();
        assert!(error.contains("certificate"), "expired: {error}");

        other.issue("client", named(&["dns:ops.corp"]));
        for end in ["pem", "key"] {
            let name = format!("client.{end}");
            fs::copy(other.path(&name), authority.path(&name)).unwrap();
        }
        let error = attempt(Some("client")).unwrap_err();
        assert!(error.contains("certificate"), "of another: {error}");
        let error = attempt(None).unwrap_err();
        let expected = if mode == "optional" { "CREDENTIAL_INVALID" } else { "certificate" };
        assert!(error.contains(expected), "{error}");
    }
}

/// A connection with a client's certificate that has sent the first bytes of HTTP/2.
fn connection(server: &Server, authority: &Authority) -> StreamOwned<ClientConnection, TcpStream> {
    let file = |name| PathBuf::from(authority.path(name));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(file("client.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("client.key")).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let socket = TcpStream::connect(server.url.trim_start_matches("https://")).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut stream = StreamOwned::new(client, socket);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    stream.flush().unwrap();
    stream
}

/// The time until the server ends a connection.
fn lifetime(stream: &mut StreamOwned<ClientConnection, TcpStream>) -> Duration {
    let begun = Instant::now();
    while stream.read(&mut [0; 1_000]).is_ok_and(|count| count > 0) {}
    assert!(begun.elapsed() < TIMEOUT, "still open");
    begun.elapsed()
}

#[test]
fn connections_end_with_their_certificates() {
    let authority = Authority::new();
    let server =
        serve(&authority, &entry("ops", "admin", "certificate = \"dns:ops.corp\""), "required");
    let mut brief = named(&["dns:ops.corp"]);
    // It lasts until the connection is open, even on a busy machine.
    brief.not_after = (SystemTime::now() + Duration::from_secs(15)).into();
    authority.issue("client", brief);
    println!("expired after {:?}", lifetime(&mut connection(&server, &authority)));

    authority.issue("client", named(&["dns:ops.corp"]));
    let mut stream = connection(&server, &authority);
    let others = Authority::new();
    fs::copy(others.path("ca.pem"), authority.path("ca.pem")).unwrap();
    println!("another authority after {:?}", lifetime(&mut stream));
}

/// A stop prolongs no certificate: an import ends with that of its client, long before the server
/// would end it.
#[test]
fn a_stream_ends_with_its_certificate_while_the_server_stops() {
    let authority = Authority::new();
    let callers = entry("ops", "admin", "certificate = \"dns:ops.corp\"");
    let more = ["--drain=100s", "--call-timeout=1h"];
    let server = serve_with(&authority, &callers, "required", &more);
    let mut brief = named(&["dns:ops.corp"]);
    // It lasts until the import is open, even on a busy machine.
    brief.not_after = (SystemTime::now() + Duration::from_secs(15)).into();
    authority.issue("client", brief);
    let file = |name: &str| authority.path(name);
    let mut import = polynym(&["import", "-", "--server", &server.url])
        .args(["--ca", &file("ca.pem"), "--cert", &file("client.pem")])
        .args(["--key", &file("client.key")])
        .current_dir(file(""))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = import.stdin.take().unwrap();
    input.write_all(b"{\"identities\": [{\"identifier\": {\"handle\": \"imported\"}}]}\n").unwrap();
    authority.issue("other", named(&["dns:ops.corp"]));
    let is_imported = || run(&server, &authority, Some("other"), &["resolve", "handle:imported"]);
    while is_imported().is_err() {
        sleep(Duration::from_millis(50));
    }
    server.signal("TERM");
    let told = String::from_utf8(import.wait_with_output().unwrap().stderr).unwrap();
    assert!(told.contains("CREDENTIAL_INVALID"), "{told}");
    drop(input);
}

/// Connections with a certificate count for its caller before the first call. As unauthenticated
/// ones, of which two may stay, they would close each other.
#[test]
fn connections_count_for_the_caller_of_their_certificate() {
    let authority = Authority::new();
    let callers = entry("ops", "admin", "certificate = \"dns:ops.corp\"");
    let server = serve_with(&authority, &callers, "required", &["--max-connections", "8"]);
    authority.issue("client", named(&["dns:ops.corp"]));
    let open = (0..4).map(|_| {
        let mut stream = connection(&server, &authority);
        // The server's settings: it knows the certificate. Until then it is a stranger's.
        assert!(stream.read(&mut [0; 1_000]).unwrap() > 0, "it is open");
        stream
    });
    let mut open: Vec<_> = open.collect();
    for stream in &mut open {
        stream.sock.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let error = loop {
            match stream.read(&mut [0; 1_000]) {
                Ok(count) => assert!(count > 0, "it is open"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "it is open");
    }
    // This is half of all: the caller gets no fifth connection.
    let error = run(&server, &authority, Some("client"), &RESOLVE).unwrap_err();
    assert!(error.contains("RATE_LIMITED"), "{error}");
}

#[test]
fn the_top_command_shows_the_certificate_of_an_admin() {
    let authority = Authority::new();
    let callers = [
        entry("ops", "admin", "certificate = \"dns:ops.corp\""),
        entry("billing", "resolver", "certificate = \"dns:billing.corp\""),
    ];
    let port = free_address().port();
    let more = ["--admin-listen", &format!("0.0.0.0:{port}")];
    let server = serve_with(&authority, &callers.concat(), "required", &more);
    let top = |name: &str| {
        authority.issue("client", named(&[name]));
        let url = format!("--metrics=https://127.0.0.1:{port}");
        run(&server, &authority, Some("client"), &["top", &url, "--once", "--interval=100ms"])
    };
    let begun = Instant::now();
    let shown = loop {
        let shown = top("dns:ops.corp").unwrap();
        // The server sets this gauge soon after its start.
        if !shown.contains("connections: –") {
            break shown;
        }
        assert!(begun.elapsed() < TIMEOUT, "{shown}");
    };
    assert!(shown.contains("connections: 0") && !shown.contains("-0"), "{shown}");
    assert!(top("dns:billing.corp").unwrap_err().contains("admin's credential"));
}
