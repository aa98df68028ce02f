//! The `polynym` program: parses the command line and runs what it asks for.

mod serve;
mod upkeep;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use polynym::cli::{self, Arguments};

/// Pages of the cache come and go on every thread: the system's allocator would keep as much again for itself.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match cli::run(command, serve::run, upkeep::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
