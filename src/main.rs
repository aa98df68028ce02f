//! The `polynym` program: parses the command line and runs the command.

mod commands;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use mimalloc::MiMalloc;
use polynym::arguments::store::Store;
use polynym::arguments::{Arguments, Command};
use polynym::settings::Serve;
use polynym_cli::Failure;
use polynym_cli::config::{self, Settings};

/// Threads allocate and free pages of the cache for each other: the system's allocator would retain
/// as much memory again.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    config::share_file_with(Serve::all());
    let Arguments { command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print(&error),
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(flags) => commands::serve::run(&flags),
        Command::Store(command) => commands::store::run(command),
        Command::Restore(command) => commands::store::run(Store::Restore(command)),
        Command::Other(command) => polynym_cli::run(*command, Arguments::command()),
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
