//! A server for tests: empty, on free ports, and removed at the end.

use std::io::{BufRead, BufReader, Error, ErrorKind, Result};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::builder::Builder;
use crate::client::Client;

/// A running server. It ends when it is dropped, and when the program of the test ends.
#[derive(Debug)]
pub struct Server {
    child: Child,
    addresses: serde_json::Value,
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts the program that `POLYNYM_BIN` names, else `polynym` of the `PATH`.
    pub fn start() -> Result<Self> {
        let named = std::env::var_os("POLYNYM_BIN");
        Self::start_program(named.map_or_else(|| "polynym".into(), PathBuf::from))
    }

    /// Starts a program, and waits until it listens.
    pub fn start_program(program: impl Into<PathBuf>) -> Result<Self> {
        // The server ends once its standard input is closed.
        let mut child = Command::new(program.into())
            .args(["serve", "--ephemeral"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || Error::new(ErrorKind::NotConnected, "the server does not listen");
        let mut output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let addresses = serde_json::from_str(&line).unwrap_or_default();
        let server = Self { child, addresses, _output: output };
        if server.address().is_empty() { Err(missing()) } else { Ok(server) }
    }

    /// The address for gRPC, such as `127.0.0.1:41234`.
    pub fn address(&self) -> &str {
        self.addresses["grpc"].as_str().unwrap_or_default()
    }

    /// The address for HTTP and JSON.
    pub fn http_address(&self) -> &str {
        self.addresses["http"].as_str().unwrap_or_default()
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        let client = Builder::new(format!("http://{}", self.address())).connect_lazy();
        client.unwrap_or_else(|error| unreachable!("an address without settings: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This closes its standard input. A server that cannot be awaited has ended.
        let _ = self.child.wait();
    }
}
