//! A server without free file descriptors.

use std::net::TcpStream;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::http2::TIMEOUT;
use crate::server::{Server, program};

#[test]
fn connections_that_cannot_be_accepted_do_not_fill_the_log() {
    const SECONDS: usize = 3;
    let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let store = format!("embedded:{}", folder.path().join("store").display());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]).arg(program());
    limited.args(["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    let server = Server::start_with(limited.stderr(log.reopen().unwrap()), &[]);
    let address = server.url.strip_prefix("http://").unwrap();
    let _open: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();

    let lines = || {
        let text = std::fs::read_to_string(log.path()).unwrap();
        text.lines().filter(|line| line.contains("cannot accept a connection")).count()
    };
    let since = Instant::now();
    while lines() == 0 {
        assert!(since.elapsed() < TIMEOUT, "all are accepted");
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_secs(SECONDS as u64));
    assert!(lines() <= SECONDS + 2, "{} lines in {SECONDS} s", lines());
}
