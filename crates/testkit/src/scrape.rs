//! The pages for operators, as a client sees them.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Mutex;

use tokio::net::TcpSocket;

/// An address on which one server can listen. Until this process ends, a socket that is bound and
/// does not listen reserves the port: the system gives it to no other program.
pub fn free_address() -> SocketAddr {
    static RESERVED: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());
    let socket = TcpSocket::new_v4().unwrap();
    // Servers set this option too, and may therefore share the port.
    socket.set_reuseaddr(true).unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    RESERVED.lock().unwrap().push(socket);
    address
}

/// The status and the body of a page.
pub fn page(address: SocketAddr, path: &str) -> (u16, String) {
    request(&mut TcpStream::connect(address).unwrap(), path, "")
}

/// Requests a page over a connection, with additional headers.
pub fn request(stream: &mut (impl Read + Write), path: &str, headers: &str) -> (u16, String) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The metrics of a server.
pub fn metrics(address: SocketAddr) -> String {
    let (status, text) = page(address, "/metrics");
    assert_eq!(status, 200, "{text}");
    text
}

/// The names of metrics, with their kinds.
pub fn kinds(text: &str) -> BTreeSet<(String, String)> {
    let kind = |line: &str| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((name.to_owned(), kind.to_owned()))
    };
    text.lines().filter_map(kind).collect()
}

/// The metrics that docs/metrics.md lists, with their kinds.
pub fn documented() -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string(crate::root().join("docs/metrics.md")).unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`');
        let is_metric = name.starts_with("polynym_") || name.starts_with("process_");
        is_metric.then_some((name.to_owned(), cells.next()?.to_owned()))
    };
    text.lines().filter_map(row).collect()
}
