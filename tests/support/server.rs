//! Runs the program: commands to their end, and servers until they are dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use tempfile::TempDir;

/// How long servers and their clients wait for each other where a test says nothing else: a busy
/// machine is no fault.
const PATIENCE: &str = "60s";

/// The program with `arguments`, and nothing of this process's environment.
pub fn polynym(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polynym"));
    command
        .args(arguments)
        .env_clear()
        .env("POLYNYM_TIMEOUT", PATIENCE)
        .env("POLYNYM_CALL_TIMEOUT", PATIENCE);
    command
}

/// A server of its own process, on a port of its own. It is killed when it is dropped.
pub struct Server {
    child: Child,
    /// Such as `http://127.0.0.1:41234`.
    pub url: String,
    stdout: BufReader<ChildStdout>,
    /// Where the server puts what is temporary: one that is killed cannot take it away itself.
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

    /// Adds `arguments` to `command`, which runs a server. It makes its store where there is none.
    pub fn start_with(command: &mut Command, arguments: &[&str]) -> Self {
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
        let url =
            line.trim_end().strip_prefix("listening on ").expect("the server starts").to_owned();
        Self { child, url, stdout, _temporary: temporary }
    }

    /// Runs a command against this server, to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        polynym(arguments).env("POLYNYM_SERVER", &self.url).output().unwrap()
    }

    /// The next line that the server prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// The id of the server's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `TERM`.
    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// The memory that the server has in use, in bytes.
    pub fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
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
