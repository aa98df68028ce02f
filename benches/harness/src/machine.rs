//! Facts about the machine and the source tree.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Fallible;

/// The machine of a run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub memory_mib: u64,
    pub kernel: String,
}

impl Machine {
    pub fn this() -> Fallible<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let cpu = field(&cpuinfo, "model name").unwrap_or("unknown").to_owned();
        let memory = field(&meminfo, "MemTotal").and_then(|text| text.split(' ').next());
        let memory_kib: u64 = memory.ok_or("/proc/meminfo has no MemTotal")?.parse()?;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
        let cores = std::thread::available_parallelism()?.get();
        Ok(Self { cores, cpu, memory_mib: memory_kib / 1024, kernel })
    }
}

/// Returns the value of a line `name : value`.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).next()
}

/// Returns the load average of the last minute.
pub fn load_average() -> Fallible<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

/// Returns the date in UTC.
pub fn date() -> Fallible<String> {
    output(Command::new("date").args(["-u", "+%F"]))
}

/// Returns the present commit, and whether the sources differ from it.
pub fn commit(root: &Path) -> Fallible<(String, bool)> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root).args(arguments));
    let changes = git(&["status", "--porcelain", "--", "src", "crates", "proto", "Cargo.lock"])?;
    Ok((git(&["rev-parse", "--short=12", "HEAD"])?, !changes.is_empty()))
}

/// Runs a command and returns its output.
pub fn output(command: &mut Command) -> Fallible<String> {
    let program = command.get_program().display().to_string();
    let named = |error: String| format!("{program}: {error}");
    let output = command.output().map_err(|error| named(error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    } else {
        Err(named(String::from_utf8_lossy(&output.stderr).into_owned()).into())
    }
}
