//! A server for tests: empty, on a free port, and gone at the end.

use std::io::{BufRead, BufReader, Error, ErrorKind, Result};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::client::{Builder, Client};

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
    _output: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Server {
    /// Starts the program that `POLYNYM_BIN` names, else `polynym` of the `PATH`.
    pub fn start() -> Result<Self> {
        let program =
            std::env::var_os("POLYNYM_BIN").map_or_else(|| "polynym".into(), PathBuf::from);
        Self::start_program(program)
    }

    /// Starts a program, and waits until it listens.
    pub fn start_program(program: impl Into<PathBuf>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let store = format!("embedded:{}", folder.path().join("store").display());
        let mut child = Command::new(program.into())
            .args(["serve", "--create", "--listen", "127.0.0.1:0", "--log", "error", "--store"])
            .arg(store)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let failed = || Error::new(ErrorKind::NotConnected, "the server does not listen");
        let mut output = BufReader::new(child.stdout.take().ok_or_else(failed)?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("listening on http://").map(str::to_owned);
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed());
        };
        Ok(Self { child, address, _output: output, _folder: folder })
    }

    /// Where it listens, such as `127.0.0.1:41234`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client of it. It must be created within a runtime of tokio.
    pub fn client(&self) -> Client {
        let client = Builder::new(format!("http://{}", self.address)).connect_lazy();
        client.unwrap_or_else(|error| unreachable!("an address without settings: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
