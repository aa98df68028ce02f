//! The file that a suite writes into `benches/results/`.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Fallible;
use crate::machine::Machine;

/// The folder of the files, from the root of the project.
pub const FOLDER: &str = "benches/results";

/// Everything that one run of a suite has measured.
#[derive(Clone, Serialize, Deserialize)]
pub struct Results {
    pub suite: String,
    /// The command that measures it again.
    pub command: String,
    /// The commit that was measured, and whether the tree had changes beyond it.
    pub commit: String,
    pub modified: bool,
    /// The date in UTC, as `2026-11-26`.
    pub date: String,
    pub machine: Machine,
    /// The load average of a minute, before and after the run.
    pub load_average: [f64; 2],
    /// The versions of the programs that were measured.
    pub versions: Vec<String>,
    pub settings: Settings,
    pub figures: Vec<Figure>,
}

/// The sizes of a run.
#[derive(Clone, Serialize, Deserialize)]
pub struct Settings {
    pub users: u64,
    pub rounds: usize,
    pub duration_seconds: f64,
    pub warmup_seconds: f64,
    /// The profile of Cargo that polynym was built with.
    pub profile: String,
}

/// One figure, with its value in each round.
#[derive(Clone, Serialize, Deserialize)]
pub struct Figure {
    /// The measured thing, such as `resolve`.
    pub subject: String,
    /// The measure, such as `p99`.
    pub metric: String,
    pub unit: String,
    /// Calls in flight; 0 where nothing was called.
    pub concurrency: usize,
    pub rounds: Vec<f64>,
}

impl Results {
    pub fn load(root: &Path, file: &str) -> Fallible<Self> {
        let path = root.join(FOLDER).join(file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{FOLDER}/{file}: {error}"))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{FOLDER}/{file}: {error}"))?)
    }

    pub fn save(&self, root: &Path) -> Fallible<()> {
        let folder = root.join(FOLDER);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(format!("{}.json", self.suite)), self.to_json()?)?)
    }

    /// Returns the text of the file, with a line for each figure.
    fn to_json(&self) -> Fallible<String> {
        let figures: Result<Vec<_>, _> = self.figures.iter().map(serde_json::to_string).collect();
        let head = serde_json::to_string_pretty(&Self { figures: Vec::new(), ..self.clone() })?;
        let lines = figures?.join(",\n    ");
        Ok(head.replace("\"figures\": []", &format!("\"figures\": [\n    {lines}\n  ]")) + "\n")
    }

    /// Returns the values of a figure, one for each round.
    pub fn rounds(&self, subject: &str, metric: &str, concurrency: usize) -> Fallible<&[f64]> {
        let found = self.figures.iter().find(|figure| {
            figure.subject == subject
                && figure.metric == metric
                && figure.concurrency == concurrency
        });
        let missing = || format!("{}: no {metric} of {subject} at {concurrency}", self.suite);
        Ok(&found.ok_or_else(missing)?.rounds)
    }

    /// Returns the concurrencies at which something was measured.
    pub fn columns(&self, subject: &str, metric: &str) -> Vec<usize> {
        let own = self.figures.iter().filter(|f| f.subject == subject && f.metric == metric);
        own.map(|figure| figure.concurrency).collect()
    }

    pub fn median(&self, subject: &str, metric: &str, concurrency: usize) -> Fallible<f64> {
        Ok(median(self.rounds(subject, metric, concurrency)?))
    }

    /// Returns the quotients of two figures, one for each round.
    pub fn ratios(&self, over: Measure, under: Measure, concurrency: usize) -> Fallible<Vec<f64>> {
        let over = self.rounds(over.0, over.1, concurrency)?;
        let under = self.rounds(under.0, under.1, concurrency)?;
        Ok(over.iter().zip(under).map(|(a, b)| a / b).collect())
    }
}

/// A subject and a metric.
pub type Measure<'a> = (&'a str, &'a str);

/// Returns the median, or NaN if there are no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
    let lower = sorted.get((sorted.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN);
    (lower + upper) / 2.0
}
