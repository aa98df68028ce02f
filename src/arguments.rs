//! The arguments of the program. Those of commands that open no store are in `polynym-cli`.

pub mod store;

use clap::{Parser, Subcommand};
use polynym_cli::BACKUP_EXAMPLES;
use polynym_cli::config::Flags;

use crate::settings::Serve;

/// A user directory where one user has many names.
///
/// Every setting has a flag, an environment variable and a key in the TOML file that --config
/// names. A flag wins over the environment, the environment over the file.
#[derive(Parser)]
#[command(name = "polynym", version, max_term_width = 120, after_help = EXAMPLES)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  polynym serve --sample
  polynym resolve email:joe.smith@example.com handle:joe
  polynym find 'joe smith'

Exit status: 0 success, 1 failure, 2 wrong usage or configuration.";

const SERVE_EXAMPLES: &str = "\
Examples:
  polynym serve --sample
  polynym serve --listen 127.0.0.1:7171 --store embedded:/var/lib/polynym --log-format json
  POLYNYM_LOG=debug polynym serve --config /etc/polynym.toml
  polynym serve --ephemeral";

/// The commands of the program.
#[derive(Subcommand)]
pub enum Command {
    /// Run a server.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Flags<Serve>),
    /// Create, inspect, upgrade and verify a store. Needs no server.
    #[command(subcommand, after_help = store::EXAMPLES)]
    Store(store::Store),
    /// A command that opens no store.
    #[command(flatten)]
    Other(Box<polynym_cli::Command>),
    /// Restore an embedded store from a backup. Needs no server.
    #[command(after_help = BACKUP_EXAMPLES)]
    Restore(store::Restore),
}
