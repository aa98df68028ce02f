//! Measures Polynym and its alternatives, and writes the figures into the documents.
//!
//! One command starts the servers, measures them with `polynym bench`, and writes
//! `benches/results/`. The others render the tables and plots of the documents, or compare them.

mod driver;
mod machine;
mod pages;
mod plot;
mod postgres;
mod process;
mod results;
mod run;
mod soak;
mod suites;
mod tables;
mod timeline;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Measures Polynym, and writes the figures into the documents.
#[derive(Parser)]
#[command(bin_name = "cargo run --release -p harness --")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, write benches/results, and render the documents
    Run {
        /// The suite to measure
        suite: Suite,
        #[command(flatten)]
        options: Options,
    },
    /// Let servers work for long under faults, write benches/results, and render the documents
    Soak(soak::Options),
    /// Write the tables and plots of the documents from benches/results
    Render,
    /// Fail if a document differs from benches/results
    Check,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Every suite; skips those whose database is not installed
    All,
    /// The server on the embedded store
    Embedded,
    /// The server on MongoDB, beside a program that uses the driver
    Mongodb,
    /// A table with a unique index in PostgreSQL
    Postgresql,
}

/// The sizes of a run, and the programs that it starts.
#[derive(Args)]
struct Options {
    /// Users with three identities each [default: 1000000, in MongoDB 200000]
    #[arg(long, value_name = "N")]
    users: Option<u64>,
    /// Rounds, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Seconds of one measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    duration: f64,
    /// Seconds before each measurement that do not count
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    warmup: f64,
    /// The cache of mongod, in GiB
    #[arg(long, value_name = "GIB", default_value_t = 2.0)]
    mongodb_cache: f64,
    /// The profile of Cargo that polynym is built with
    #[arg(long, value_name = "NAME", default_value = "dist")]
    profile: String,
    /// A polynym that is built already
    #[arg(long, value_name = "FILE")]
    polynym: Option<PathBuf>,
    /// The mongod to start [default: $MONGOD_BIN, or the one on the PATH]
    #[arg(long, value_name = "FILE")]
    mongod: Option<PathBuf>,
    /// The folder of PostgreSQL's programs [default: found]
    #[arg(long, value_name = "FOLDER")]
    postgresql: Option<PathBuf>,
}

/// Returns the folder of the project.
fn root() -> PathBuf {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    benches.and_then(Path::parent).unwrap_or(Path::new(".")).to_owned()
}

fn execute(command: &Command) -> Fallible<()> {
    match command {
        Command::Run { suite, options } => {
            suites::run(*suite, options)?;
            pages::render(&root())
        }
        Command::Soak(options) => {
            let outcome = soak::run(options);
            pages::render(&root())?;
            outcome
        }
        Command::Render => pages::render(&root()),
        Command::Check => {
            let faults = pages::faults(&root())?;
            if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
        }
    }
}

fn main() -> ExitCode {
    match execute(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
