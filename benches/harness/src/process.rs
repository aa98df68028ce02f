//! The servers that a run starts, each ended when it is dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::machine::{field, output};

/// Clock ticks of the kernel in a second.
const TICKS: f64 = 100.0;

/// A process that is killed when it is dropped.
pub struct Process(Child);

impl Process {
    pub fn start(command: &mut Command) -> Fallible<Self> {
        let program = command.get_program().display().to_string();
        Ok(Self(command.spawn().map_err(|error| format!("{program}: {error}"))?))
    }

    /// Returns the processor time in microseconds.
    pub fn cpu_us(&self) -> Fallible<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
        let ticks = |n: usize| fields.get(n).unwrap_or(&"").parse::<f64>();
        Ok((ticks(12)? + ticks(13)?) / TICKS * 1e6)
    }

    /// Returns the resident memory in MiB.
    pub fn memory_mib(&self) -> Fallible<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let memory = field(&status, "VmRSS").and_then(|text| text.split(' ').next());
        Ok(memory.ok_or("the server has ended")?.parse::<f64>()? / 1024.0)
    }

    /// Ends the process with a signal, and waits for it.
    pub fn stop(&mut self, signal: &str) -> Fallible<()> {
        output(Command::new("kill").args([&format!("-{signal}"), &self.0.id().to_string()]))?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `polynym serve`.
pub struct Server {
    pub process: Process,
    pub url: String,
    pub started: Instant,
    /// The time until the server listened.
    pub listening: Duration,
}

impl Server {
    /// Starts a server on a port of its own. The log goes to a file.
    pub fn start(polynym: &Path, store: &str, flags: &[&str], log: &Path) -> Fallible<Self> {
        let started = Instant::now();
        let mut command = Command::new(polynym);
        command.args(["serve", "--listen", "127.0.0.1:0", "--create", "--store", store]);
        command.args(flags).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut process = Process::start(&mut command)?;

        let mut line = String::new();
        if let Some(stdout) = process.0.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            return Err(format!("the server did not start:\n{}", fs::read_to_string(log)?).into());
        };
        Ok(Self { process, url: url.to_owned(), started, listening: started.elapsed() })
    }
}

/// Returns a TCP port that is free now.
pub fn free_port() -> Fallible<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
