//! The figures of a soak, and what they must be like.

use std::fs;

use super::tally::{Calls, Tally};

/// The most by which the memory of a server may rise in the second half, in MiB, and its
/// descriptors and threads. In 600 s with 1,000 calls a second, 8 MiB are 14 bytes a call.
const MEMORY_MIB: f64 = 8.0;
const HANDLES: f64 = 8.0;
/// The shortest soak whose figures must be flat, in seconds: caches and pools fill before.
pub const LONG: f64 = 300.0;

/// The memory, descriptors and threads of a process.
#[derive(Clone, Copy)]
pub struct Usage {
    pub memory_mib: f64,
    pub descriptors: f64,
    pub threads: f64,
}

impl Usage {
    /// Returns none for a process that has ended.
    pub fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse::<f64>().ok()
        };
        Some(Self {
            memory_mib: number("VmRSS:")? / 1024.0,
            descriptors: fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as f64,
            threads: number("Threads:")?,
        })
    }
}

/// The servers and the calls at one time.
pub struct Sample {
    /// The time since the start.
    pub seconds: f64,
    /// None for a server that was down.
    pub servers: Vec<Option<Usage>>,
    /// The calls since the sample before.
    pub calls: Calls,
}

/// The results of a soak.
pub struct Report {
    pub samples: Vec<Sample>,
    /// The blows, with the seconds since the start.
    pub blows: Vec<(f64, String)>,
    pub total: Calls,
    /// Wrong answers, failures while nothing was down, findings of `store verify`.
    pub faults: Vec<String>,
}

impl Report {
    pub(super) fn new(samples: Vec<Sample>, blows: Vec<(f64, String)>, tally: &Tally) -> Self {
        Self { samples, blows, total: tally.total(), faults: tally.faults() }
    }

    /// Returns the rise of a figure of the first server over the second half, by the line that fits
    /// the samples best. That server is not restarted in this time.
    pub fn rise(&self, figure: impl Fn(&Usage) -> f64) -> f64 {
        let half = self.samples.last().map_or(0.0, |last| last.seconds / 2.0);
        let points: Vec<_> = self
            .samples
            .iter()
            .filter(|sample| sample.seconds > half)
            .filter_map(|sample| Some((sample.seconds, figure(sample.servers[0].as_ref()?))))
            .collect();
        slope(&points) * half
    }

    /// Returns what is not flat. In a short soak nothing has to be.
    pub fn rising(&self) -> Vec<String> {
        if self.samples.last().is_none_or(|last| last.seconds < LONG) {
            return Vec::new();
        }
        let rises = [
            ("memory in MiB", self.rise(|usage| usage.memory_mib), MEMORY_MIB),
            ("descriptors", self.rise(|usage| usage.descriptors), HANDLES),
            ("threads", self.rise(|usage| usage.threads), HANDLES),
        ];
        let high = rises.iter().filter(|(_, rise, bound)| rise > bound);
        high.map(|(what, rise, bound)| format!("{what}: rises by {rise:.1}, not {bound}")).collect()
    }
}

/// Returns the slope of the line with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let common: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    if spread > 0.0 { common / spread } else { 0.0 }
}
