//! The program's arguments as a whole; each subcommand's own stand in its file.

use clap::{Parser, Subcommand};

use super::{
    attributes, bench, completions, id, identity, inbox, renormalize, resolve, store, tenant,
    token, top, transfer, usage, user, watch,
};
use crate::config::{Flags, Serve, Top};

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

Exit status: 0 done, 1 failed, 2 wrong usage or configuration.";

const SERVE_EXAMPLES: &str = "\
Examples:
  polynym serve --sample
  polynym serve --listen 127.0.0.1:7171 --store embedded:/var/lib/polynym --log-format json
  POLYNYM_LOG=debug polynym serve --config /etc/polynym.toml";

/// The commands of the program.
#[derive(Subcommand)]
pub enum Command {
    /// Run a server.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Flags<Serve>),
    /// Make, look into and verify the store itself. Needs no server.
    #[command(subcommand, after_help = store::EXAMPLES)]
    Store(store::Store),
    /// Find the users that identifiers belong to.
    #[command(after_help = resolve::EXAMPLES)]
    Resolve(resolve::Resolve),
    /// Register, show, change, merge and delete users.
    #[command(subcommand, after_help = user::EXAMPLES)]
    User(user::User),
    /// Link, unlink, replace, verify and look into identities.
    #[command(subcommand, after_help = identity::EXAMPLES)]
    Identity(identity::Identity),
    /// Show the names of attributes, and define attributes.
    #[command(subcommand, after_help = attributes::EXAMPLES)]
    Attribute(attributes::Attribute),
    /// Show and set tenants and their policies.
    #[command(subcommand, after_help = tenant::EXAMPLES)]
    Tenant(tenant::Tenant),
    /// Import users from a file of JSON Lines or CSV.
    #[command(after_help = transfer::arguments::IMPORT_EXAMPLES)]
    Import(transfer::arguments::Import),
    /// Export a tenant and its users as JSON Lines.
    #[command(after_help = transfer::arguments::EXPORT_EXAMPLES)]
    Export(transfer::arguments::Export),
    /// Copy the embedded store to a file, while it is served.
    #[command(after_help = transfer::backup::EXAMPLES)]
    Backup(transfer::backup::Backup),
    /// Make an embedded store of a backup. Needs no server.
    #[command(after_help = transfer::backup::EXAMPLES)]
    Restore(store::Restore),
    /// Print made-up users as JSON Lines, to import them. Needs no server.
    #[command(after_help = transfer::sample::EXAMPLES)]
    Sample(transfer::sample::Sample),
    /// Move a tenant's identities to the present rules of normalisation.
    #[command(after_help = renormalize::EXAMPLES)]
    Renormalize(renormalize::Renormalize),
    /// Make, show and revoke the tokens of a server's callers. Needs no server.
    #[command(subcommand, after_help = token::EXAMPLES)]
    Token(token::Token),
    /// Generate ids, or show the fields of one. Needs no server.
    #[command(subcommand, after_help = id::EXAMPLES)]
    Id(id::Id),
    /// Show what happens to users, as it happens.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::Watch),
    /// Send notices to users, and list, mark and delete those of a user.
    #[command(subcommand, after_help = inbox::EXAMPLES)]
    Inbox(inbox::Inbox),
    /// Show how often callers did what in a tenant, by minute, hour or day.
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::Usage),
    /// Load a running server and measure it.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Run),
    /// Watch a server: calls a second, times, errors, and what is in use.
    #[command(after_help = top::EXAMPLES)]
    Top(Flags<Top>),
    /// Print a script that completes this program's commands in a shell.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Completions),
}
