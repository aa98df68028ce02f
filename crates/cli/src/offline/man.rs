//! `polynym man`.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

pub const EXAMPLES: &str = "\
Example:
  polynym man /usr/local/share/man/man1";

#[derive(Args)]
pub struct Man {
    /// The folder, which exists.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub fn run(command: &Man, program: Command) -> Result<(), Failure> {
    let program = program.disable_help_subcommand(true);
    Ok(clap_mangen::generate_to(program, &command.folder)?)
}
