//! The `polynym` program: parses the command line and runs what it asks for.

mod serve;

use std::process::ExitCode;

use clap::Parser;
use polynym::cli::{self, Arguments};

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match cli::run(command, serve::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
