//! `polynym completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

pub const EXAMPLES: &str = "\
Example:
  polynym completions bash > ~/.local/share/bash-completion/completions/polynym";

#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

pub fn run(command: &Completions, mut program: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut program, "polynym", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
