//! `polynym serve --ephemeral`: a server for tests, which ends with the test.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{json, stderr};
use crate::server::{polynym, signal};

/// The maximum time for a server to stop on a busy machine.
const STOP: Duration = Duration::from_secs(60);

/// A server whose temporary folder lies in `folder`. It is killed on drop.
pub struct Ephemeral {
    child: Child,
    stdout: BufReader<ChildStdout>,
    folder: TempDir,
    url: String,
}

impl Ephemeral {
    fn start(input: impl Into<Stdio>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = polynym(&["serve", "--ephemeral"])
            .env("TMPDIR", folder.path())
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addresses: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = |name: &str| addresses[name].as_str().unwrap();
        assert_ne!(address("grpc"), address("http"));
        let url = format!("http://{}", address("grpc"));
        Self { child, stdout, folder, url }
    }

    /// A server without a word on its standard input.
    pub fn quiet() -> Self {
        Self::start(Stdio::null())
    }

    /// Its address for calls.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs a command against this server.
    pub fn run(&self, arguments: &[&str]) -> Output {
        polynym(arguments).env("POLYNYM_SERVER", &self.url).output().unwrap()
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the server ends. Returns its status, and what it printed to both outputs since
    /// its first line.
    fn wait(mut self) -> (ExitStatus, String, TempDir) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < STOP, "the server does not stop");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut printed = String::new();
        self.stdout.read_to_string(&mut printed).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (status, printed, folder)
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn two_servers_serve_tenants_of_their_own_without_a_word() {
    let servers = [Ephemeral::start(Stdio::null()), Ephemeral::start(Stdio::null())];
    for server in &servers {
        let create = ["user", "create", "--tenant", "a-test", "--identity", "handle:joe", "--json"];
        let created = server.run(&create);
        assert!(created.status.success(), "{}", stderr(&created));
        assert_eq!(json(&created).len(), 1);
    }
    for server in servers {
        assert!(!is_empty(server.folder.path()));
        signal(server.child.id(), "TERM");
        let (status, printed, folder) = server.wait();
        assert_eq!((status.code(), printed.as_str()), (Some(0), ""));
        assert!(is_empty(folder.path()));
    }
}

#[test]
fn a_server_ends_when_the_pipe_of_its_parent_closes() {
    let mut piped = Ephemeral::start(Stdio::piped());
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut with_socket = Ephemeral::start(OwnedFd::from(theirs));
    for server in [&mut piped, &mut with_socket] {
        let resolved = server.run(&["resolve", "handle:joe"]);
        assert!(stderr(&resolved).contains("nobody owns"), "{}", stderr(&resolved));
        assert!(server.is_running());
    }
    drop((piped.child.stdin.take(), ours));
    for server in [piped, with_socket] {
        let (status, printed, folder) = server.wait();
        assert_eq!(status.code(), Some(0), "{printed}");
        assert!(printed.contains("standard input was closed"), "{printed}");
        assert!(is_empty(folder.path()));
    }
}

#[test]
fn a_server_whose_input_is_a_file_outlives_its_end() {
    let mut server = Ephemeral::start(File::open("/dev/null").unwrap());
    let file = tempfile::tempfile().unwrap();
    let mut with_file = Ephemeral::start(file);
    for server in [&mut server, &mut with_file] {
        assert!(server.run(&["tenant", "set", "--json", "--verified-wins", "on"]).status.success());
        assert!(server.is_running());
    }
}
