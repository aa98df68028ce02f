//! One run of a suite: its servers' folder, its settings, and the figures so far.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use crate::Fallible;
use crate::Options;
use crate::machine::{self, Machine, output};
use crate::process::Server;
use crate::results::{Figure, Results, Settings};
use crate::root;

/// Calls in flight for most measurements.
pub const CONCURRENCIES: [usize; 4] = [1, 16, 64, 256];
/// Calls in flight for writes to MongoDB, and for PostgreSQL.
pub const LOW_CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// The users whose identities are linked and unlinked.
const LINKED: u64 = 1_000;

/// The output of `polynym bench --json`.
#[derive(Deserialize)]
pub struct Report {
    pub calls_per_second: f64,
    identifiers_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
}

pub struct Run {
    suite: &'static str,
    polynym: PathBuf,
    folder: TempDir,
    pub settings: Settings,
    load_before: f64,
    figures: Vec<Figure>,
}

impl Run {
    pub fn new(
        suite: &'static str,
        options: &Options,
        polynym: &Path,
        default_users: u64,
    ) -> Fallible<Self> {
        let settings = Settings {
            users: options.users.unwrap_or(default_users),
            rounds: options.rounds,
            duration_seconds: options.duration,
            warmup_seconds: options.warmup,
            profile: options.profile.clone(),
        };
        let folder = tempfile::Builder::new().prefix("polynym-harness-").tempdir()?;
        let load_before = machine::load_average()?;
        let polynym = polynym.to_owned();
        Ok(Self { suite, polynym, folder, settings, load_before, figures: Vec::new() })
    }

    /// Returns the folder for the data of the servers.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn serve(&self, store: &str, flags: &[&str]) -> Fallible<Server> {
        Server::start(&self.polynym, store, flags, &self.folder().join("server.log"))
    }

    /// Returns a command of `polynym`.
    pub fn polynym(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.polynym);
        command.args(arguments);
        command
    }

    /// Returns a measurement by `polynym bench`, which fails on a wrong or failed answer.
    pub fn bench_command(
        &self,
        server: &Server,
        mode: &str,
        concurrency: usize,
        seconds: f64,
    ) -> Command {
        // `link` first looks up the ids of all its users.
        let users = if mode == "link" { LINKED } else { self.settings.users };
        let sizes = [
            ("--users", users.to_string()),
            ("--concurrency", concurrency.to_string()),
            ("--duration", seconds.to_string()),
            ("--warmup", self.settings.warmup_seconds.to_string()),
        ];
        let mut command = self.polynym(&["bench", mode, "--json", "--server", &server.url]);
        for (flag, value) in &sizes {
            command.args([flag, value.as_str()]);
        }
        if matches!(mode, "resolve" | "batch") {
            command.arg("--loaded");
        }
        command
    }

    /// Loads the users that are missing, and reads each of the others.
    pub fn load(&self, server: &Server) -> Fallible<()> {
        let users = self.settings.users.to_string();
        let mut command = self.polynym(&["bench", "resolve", "--json", "--server", &server.url]);
        command.args(["--users", &users, "--concurrency", "1", "--duration", "100ms"]);
        output(command.args(["--warmup", "0"])).map(drop)
    }

    /// Measures a kind of call at one concurrency.
    pub fn measure(
        &mut self,
        server: &Server,
        subject: &str,
        mode: &str,
        concurrency: usize,
    ) -> Fallible<Report> {
        let seconds = self.settings.duration_seconds;
        let json = output(&mut self.bench_command(server, mode, concurrency, seconds))?;
        let report: Report = serde_json::from_str(&json)?;
        self.note_calls(subject, concurrency, report.calls_per_second);
        if mode == "batch" {
            let identifiers = report.identifiers_per_second;
            self.note(subject, "identifiers", "per second", concurrency, identifiers);
        }
        self.note(subject, "p50", "µs", concurrency, report.p50_us);
        self.note(subject, "p99", "µs", concurrency, report.p99_us);
        self.note(subject, "p999", "µs", concurrency, report.p999_us);
        Ok(report)
    }

    pub fn note_calls(&mut self, subject: &str, concurrency: usize, per_second: f64) {
        eprintln!("  {subject} at {concurrency}: {per_second:.0} calls a second");
        self.note(subject, "calls", "per second", concurrency, per_second);
    }

    /// Adds the value of one round to a figure.
    pub fn note(
        &mut self,
        subject: &str,
        metric: &str,
        unit: &str,
        concurrency: usize,
        value: f64,
    ) {
        let rounded = (value * 1e3).round() / 1e3;
        let same = |figure: &&mut Figure| {
            figure.subject == subject
                && figure.metric == metric
                && figure.concurrency == concurrency
        };
        if let Some(figure) = self.figures.iter_mut().find(same) {
            figure.rounds.push(rounded);
            return;
        }
        self.figures.push(Figure {
            subject: subject.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            concurrency,
            rounds: vec![rounded],
        });
    }

    /// Writes the file of results.
    pub fn finish(&self, database: Option<String>) -> Fallible<()> {
        let Settings { users, rounds, duration_seconds, warmup_seconds, .. } = &self.settings;
        let command = format!(
            "cargo run --release -p harness -- run {} --users {users} --rounds {rounds} \
             --duration {duration_seconds} --warmup {warmup_seconds}",
            self.suite
        );
        let (commit, modified) = machine::commit(&root())?;
        let rustc = output(Command::new("rustc").arg("--version"))?;
        let results = Results {
            suite: self.suite.to_owned(),
            command,
            commit,
            modified,
            date: machine::date()?,
            machine: Machine::this()?,
            load_average: [self.load_before, machine::load_average()?],
            versions: [output(&mut self.polynym(&["--version"]))?, rustc]
                .into_iter()
                .chain(database)
                .collect(),
            settings: self.settings.clone(),
            figures: self.figures.clone(),
        };
        results.save(&root())
    }
}
