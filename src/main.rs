//! The `polynym` program: parses the command line and runs the command.

mod commands;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use polynym_cli::{self as cli, Arguments, Failure};

/// Threads allocate and free pages of the cache for each other: the system's allocator would retain
/// as much memory again.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let Arguments { command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print(&error),
    };
    match cli::run(command, commands::serve::run, commands::store::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help, the version, or an error in the arguments.
fn print(error: &clap::Error) -> ExitCode {
    match error.print() {
        Ok(()) if error.use_stderr() => ExitCode::from(2),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::from(error).report(),
    }
}
