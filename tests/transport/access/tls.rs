//! TLS: commands and other clients against an encrypted server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_rustls::rustls;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use super::wait_for_invalid_files;
use crate::server::{Server, polynym};
use crate::support::tls::Authority;

/// The time limit of each wait.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn commands_call_a_server_whose_authority_they_trust() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = authority.serve();
    assert!(server.url.starts_with("https://"));
    let found = server.run(&["resolve", "handle:joe", "--ca", &authority.path("ca.pem")]);
    assert!(found.status.success(), "{found:?}");

    let refused = |arguments: &[&str]| {
        let output = server.run(&[&["resolve", "handle:joe"], arguments].concat());
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let error = refused(&["--ca", &other.path("ca.pem")]);
    assert!(error.contains("certificate"), "{error}");
    refused(&[]);
    let plain = server.url.replace("https://", "http://");
    refused(&["--server", &plain]);
}

#[test]
fn clients_speak_http2_over_tls() {
    let authority = Authority::new();
    let server = authority.serve();
    for version in [&TLS12, &TLS13] {
        let protocol = authority.greet(&server, &[version], &["h2"]).unwrap();
        assert_eq!(protocol.as_deref(), Some(&b"h2"[..]));
    }
    assert!(authority.greet(&server, &[&TLS13, &TLS12], &["http/1.1"]).is_err());
    let both = authority.greet(&server, &[&TLS13], &["http/1.1", "h2"]).unwrap();
    assert_eq!(both.as_deref(), Some(&b"h2"[..]));
}

#[test]
fn clients_without_a_protocol_are_closed() {
    let authority = Authority::new();
    let server = authority.serve();
    // The handshake of TLS 1.3 ends for the client before the server has looked at it.
    if let Ok((mut client, mut stream)) = authority.handshake(&server, &[&TLS13], &[]) {
        let mut session = rustls::Stream::new(&mut client, &mut stream);
        assert_eq!(session.read(&mut [0; 100]).unwrap_or(0), 0);
    }
}

/// The versions of SSL and TLS as a ClientHello has them.
const SSL_3: u16 = 0x0300;
const TLS_1_0: u16 = 0x0301;
const TLS_1_1: u16 = 0x0302;
const TLS_1_2: u16 = 0x0303;

#[test]
fn older_versions_of_tls_are_refused() {
    let authority = Authority::new();
    let server = authority.serve();
    let answer = |version: u16, versions: &[u16]| {
        let address = server.url.trim_start_matches("https://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(&client_hello(version, versions)).unwrap();
        let mut answer = Vec::new();
        let mut piece = [0; 100];
        while answer.len() < 7 {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(count) => answer.extend(&piece[..count]),
            }
        }
        answer
    };

    // A fatal alert (21, 2): handshake_failure (40) or protocol_version (70), RFC 8446, section 6.
    let is_refused = |answer: &[u8]| {
        answer.first() == Some(&21) && matches!(answer.get(5..7), Some([2, 40 | 70]))
    };
    for version in [SSL_3, TLS_1_0, TLS_1_1] {
        let (old, only) = (answer(version, &[]), answer(TLS_1_2, &[version]));
        assert!(is_refused(&old), "{version:x}: {old:?}");
        assert!(is_refused(&only), "{version:x} as the only one: {only:?}");
    }
    // The same message is a good one for TLS 1.2: the server begins its handshake (22).
    for good in [answer(TLS_1_2, &[]), answer(TLS_1_2, &[TLS_1_1, TLS_1_2])] {
        assert_eq!(good.first(), Some(&22), "{good:?}");
    }
}

/// A record with a ClientHello of this version, that offers `versions` in the extension for TLS
/// 1.3 (RFC 8446, section 4.1.2).
fn client_hello(version: u16, versions: &[u16]) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let extension = |kind: u16, body: &[u8]| [&kind.to_be_bytes()[..], &sized(body)].concat();
    let offered: Vec<u8> = versions.iter().flat_map(|version| version.to_be_bytes()).collect();
    let mut extensions = vec![
        // The groups x25519 and secp256r1, and the signature ecdsa_secp256r1_sha256.
        extension(10, &sized(&[0, 29, 0, 23])),
        extension(13, &sized(&[4, 3])),
        extension(16, &sized(b"\x02h2")),
        extension(23, &[]),
    ];
    if !offered.is_empty() {
        extensions.push(extension(43, &[&[offered.len() as u8], &offered[..]].concat()));
    }
    // ECDHE with ECDSA: AES-128-GCM, and AES-128-CBC as TLS 1.1 has it.
    let ciphers = [0xc0, 0x2b, 0xc0, 0x09];
    let hello = [
        &version.to_be_bytes()[..],
        &[7; 32],
        &[0],
        &sized(&ciphers),
        &[1, 0],
        &sized(&extensions.concat()),
    ]
    .concat();
    let message = [&[1, 0][..], &sized(&hello)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

#[test]
fn silent_clients_are_closed() {
    let authority = Authority::new();
    let server = authority.serve();
    let address = server.url.trim_start_matches("https://");
    let begun = Instant::now();
    let silent = TcpStream::connect(address).unwrap();
    let (mut client, mut greeted) = authority.handshake(&server, &[&TLS13], &["h2"]).unwrap();
    for stream in [&silent, &greeted] {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    }
    assert_eq!((&silent).read(&mut [0; 100]).unwrap_or(0), 0, "no handshake");
    let ended = rustls::Stream::new(&mut client, &mut greeted).read(&mut [0; 100]).unwrap_or(0);
    assert_eq!(ended, 0, "a handshake, and no preface");
    assert!(begun.elapsed() < TIMEOUT);
}

#[test]
fn a_new_certificate_is_used_without_a_restart() {
    let authority = Authority::new();
    let (certificate, key) = (authority.path("server.pem"), authority.path("server.key"));
    let log = authority.path("log");
    let arguments = ["--sample", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start_logged(&arguments, Path::new(&log));
    let connects = || authority.handshake(&server, &[&TLS13], &["h2"]).is_ok();
    assert!(connects());
    let good = fs::read(&key).unwrap();
    fs::write(&key, &good[..good.len() / 2]).unwrap();
    wait_for_invalid_files(Path::new(&log), 1);
    assert!(connects(), "half of a key changes nothing");

    authority.renew();
    let begun = Instant::now();
    while !connects() {
        assert!(begun.elapsed() < TIMEOUT, "the new certificate is not used");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn unusable_certificates_are_reported() {
    let (authority, other) = (Authority::new(), Authority::new());
    let start = |certificate: &str, key: &str| {
        let arguments = ["serve", "--sample", "--listen", "127.0.0.1:0"];
        let files = ["--tls-cert", certificate, "--tls-key", key];
        let output = polynym(&[&arguments[..], &files].concat()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let (certificate, key) = (authority.path("server.pem"), authority.path("server.key"));
    assert!(start(&authority.path("none.pem"), &key).contains("none.pem"));
    assert!(start(&certificate, &certificate).contains("server.pem"));
    assert!(start(&key, &key).contains("server.key"));
    let mismatch = start(&certificate, &other.path("server.key"));
    assert!(mismatch.contains("server.pem"), "{mismatch}");
}
