//! Runs the program: commands until they end, and servers until they are dropped.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The default timeout of servers and clients: long enough for a busy machine.
const TIMEOUT: &str = "60s";

/// The program that is tested: Cargo builds it, and names it to tests.
pub fn program() -> PathBuf {
    let path = env::var_os("CARGO_BIN_EXE_polynym").map(PathBuf::from);
    path.unwrap_or_else(|| build_folder().join("polynym"))
}

/// The folder of the program: this program, or the folder in it that has tests.
pub fn build_folder() -> PathBuf {
    let this = env::current_exe().unwrap();
    let is_of_tests = |folder: &&Path| folder.ends_with("deps");
    this.ancestors().skip(1).find(|folder| !is_of_tests(folder)).unwrap().to_owned()
}

/// A command that runs the program with `arguments` and an empty environment.
pub fn polynym(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .env_clear()
        .env("POLYNYM_TIMEOUT", TIMEOUT)
        .env("POLYNYM_CALL_TIMEOUT", TIMEOUT);
    command
}

/// Sends a signal such as `TERM` to a process.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits until this is true, at most for a minute.
pub fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(10));
    }
}

/// A server process on a free port. It is killed on drop.
pub struct Server {
    child: Child,
    /// Such as `http://127.0.0.1:41234`.
    pub url: String,
    stdout: BufReader<ChildStdout>,
    /// The temporary folder of the server: a killed server cannot remove it.
    _temporary: TempDir,
}

impl Server {
    /// Starts `serve` with `arguments` and waits until it listens.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(
            &mut polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "error"]),
            arguments,
        )
    }

    /// Starts `serve` with its log in a file.
    pub fn start_logged(arguments: &[&str], log: &Path) -> Self {
        let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "error"]);
        Self::start_with(command.stderr(File::create(log).unwrap()), arguments)
    }

    /// Adds `arguments` to `command`, which runs a server. The server creates its store if there is
    /// none.
    pub fn start_with(command: &mut Command, arguments: &[&str]) -> Self {
        Self::try_start_with(command, arguments).expect("the server starts")
    }

    /// The same; none if the server ends before it listens.
    pub fn try_start_with(command: &mut Command, arguments: &[&str]) -> Option<Self> {
        let temporary = tempfile::tempdir().unwrap();
        if !command.get_envs().any(|(name, _)| name == "TMPDIR") {
            command.env("TMPDIR", temporary.path());
        }

        let mut child = command
            .args(arguments)
            .env("POLYNYM_CREATE", "true")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());

        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let server = Self { child, url, stdout, _temporary: temporary };
        (!server.url.is_empty()).then_some(server)
    }

    /// Runs a command against this server, and waits until it ends.
    pub fn run(&self, arguments: &[&str]) -> Output {
        polynym(arguments).env("POLYNYM_SERVER", &self.url).output().unwrap()
    }

    /// Reads the next line of the standard output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// The URL of the HTTP listener, which the second line names: call this first.
    pub fn http_url(&mut self) -> String {
        let line = self.line();
        let url = line.trim_end().strip_prefix("HTTP and JSON on ");
        url.unwrap_or_else(|| panic!("no HTTP listener: {line}")).to_owned()
    }

    /// The id of the server's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `TERM`.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// The memory of the server in bytes, without its code, which is resident where it has run.
    pub fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Waits until the server ends.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
