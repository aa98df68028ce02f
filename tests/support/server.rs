//! The real program as a server of its own: made-up users, a free port, and nothing of it left afterwards.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running `polynym serve --sample`. It ends when this goes.
pub struct Sample {
    process: Child,
    address: String,
    _folder: TempDir,
}

impl Sample {
    /// Starts it, and waits until it listens.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_polynym"));
        command.args(["serve", "--sample", "--listen", "127.0.0.1:0", "--log", "warn"]);
        command.env_clear().env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim_end().strip_prefix("listening on http://").map(str::to_owned);
        let address = address.unwrap_or_else(|| panic!("the server says {first:?}"));
        Self { process, address, _folder: folder }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
