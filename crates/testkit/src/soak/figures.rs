//! The figures of a soak, and what they must be like.

use std::collections::BTreeMap;
use std::fs;

use super::tally::{Calls, Tally};

/// The most by which the memory of a server may rise in the second half, in MiB, and its
/// descriptors and threads. In 600 s with 1,000 calls a second, 8 MiB are 14 bytes a call.
const MEMORY_MIB: f64 = 8.0;
const HANDLES: f64 = 8.0;
/// How many times as much they may rise in all, with what faults leave behind.
const ALL: f64 = 3.0;
/// The fewest samples between two faults that are judged.
const MIN_SAMPLES: usize = 4;
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

    /// Returns the rise of a figure of the first server over the second half: what it rises by
    /// while nothing goes down, and in all. That server is not restarted in this time.
    ///
    /// After a fault a server has more connections and buffers, for the callers who waited. So the
    /// first is the median of the lines that fit the samples best between two faults.
    pub fn rise(&self, figure: impl Fn(&Usage) -> f64) -> [f64; 2] {
        let half = self.samples.last().map_or(0.0, |last| last.seconds / 2.0);
        let stretch = |seconds: f64| self.blows.iter().filter(|(at, _)| *at < seconds).count();
        let mut stretches: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| sample.seconds > half) {
            if let Some(usage) = &sample.servers[0] {
                let point = (sample.seconds, figure(usage));
                stretches.entry(stretch(sample.seconds)).or_default().push(point);
            }
        }
        stretches.retain(|_, points| points.len() >= MIN_SAMPLES);
        let level = |points: &Vec<(f64, f64)>| median(points.iter().map(|point| point.1).collect());
        let ends = [stretches.values().next(), stretches.values().next_back()];
        let [first, last] = ends.map(|points| points.map_or(0.0, level));
        let slopes = stretches.values().map(|points| slope(points)).collect();
        [median(slopes) * half, last - first]
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
        let judged = rises.into_iter().flat_map(|(what, [steady, all], bound)| {
            [(what, "steadily", steady, bound), (what, "in all", all, bound * ALL)]
        });
        let high = judged.filter(|(.., rise, bound)| rise > bound);
        high.map(|(what, how, rise, bound)| {
            format!("{what}: rises {how} by {rise:.1}, not {bound}")
        })
        .collect()
    }
}

/// Returns the middle one of some numbers; 0 of none.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
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
