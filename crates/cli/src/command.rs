//! The commands of this crate. Each command's own arguments are in its module.

use clap::Subcommand;

use super::client::health;
use super::offline::{completions, id, man, openapi, token};
use super::tenant::{self, renormalize, usage};
use super::{
    apply, attribute, bench, bulk, delivery, identity, inbox, resolve, top, transfer, user, watch,
};
use crate::config::{Flags, Server, Top};

/// The commands that open no store.
#[derive(Subcommand)]
pub enum Command {
    /// Find the users that identifiers belong to.
    #[command(after_help = resolve::EXAMPLES)]
    Resolve(resolve::Resolve),
    /// Find users by what you know of them: identifiers, names, or parts of these.
    #[command(after_help = user::find::EXAMPLES)]
    Find(user::find::Find),
    /// Register, show, change, merge and delete users.
    #[command(subcommand, after_help = user::EXAMPLES)]
    User(user::User),
    /// Change all users that a filter matches, on the server.
    #[command(subcommand, after_help = bulk::EXAMPLES)]
    Bulk(bulk::Bulk),
    /// Link, unlink, replace, verify and inspect identities.
    #[command(subcommand, after_help = identity::EXAMPLES)]
    Identity(identity::Identity),
    /// List the names of attributes, and define attributes.
    #[command(subcommand, after_help = attribute::EXAMPLES)]
    Attribute(attribute::Attribute),
    /// Show, set and delete tenants and their policies.
    #[command(subcommand, after_help = tenant::EXAMPLES)]
    Tenant(tenant::Tenant),
    /// Change the tenants of a server to what files describe.
    #[command(after_help = apply::EXAMPLES)]
    Apply(apply::Apply),
    /// Print tenants as a file for `apply`.
    #[command(after_help = apply::get::EXAMPLES)]
    Get(apply::get::Get),
    /// Import users from a file of JSON Lines or CSV.
    #[command(after_help = transfer::arguments::IMPORT_EXAMPLES)]
    Import(transfer::arguments::Import),
    /// Undo an import or a bulk change: users become what they were before.
    #[command(after_help = transfer::undo::EXAMPLES)]
    Undo(transfer::undo::Undo),
    /// Export a tenant and its users as JSON Lines.
    #[command(after_help = transfer::arguments::EXPORT_EXAMPLES)]
    Export(transfer::arguments::Export),
    /// Back up the embedded store of a running server to a file.
    #[command(after_help = transfer::backup::EXAMPLES)]
    Backup(transfer::backup::Backup),
    /// Print made-up users as JSON Lines for `import`. Needs no server.
    #[command(after_help = transfer::sample::EXAMPLES)]
    Sample(transfer::sample::Sample),
    /// Move a tenant's identities to the current normalisation rules.
    #[command(after_help = renormalize::EXAMPLES)]
    Renormalize(renormalize::Renormalize),
    /// Create, list and revoke tokens of a server's callers. Needs no server.
    #[command(subcommand, after_help = token::EXAMPLES)]
    Token(token::Token),
    /// Generate ids, or show the fields of one. Needs no server.
    #[command(subcommand, after_help = id::EXAMPLES)]
    Id(id::Id),
    /// Show changes to users as they happen.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::Watch),
    /// Deliver events to receivers over HTTPS, and see what became of them.
    #[command(subcommand, after_help = delivery::EXAMPLES)]
    Delivery(delivery::Delivery),
    /// Send notices to users, and list, mark and delete the notices of a user.
    #[command(subcommand, after_help = inbox::EXAMPLES)]
    Inbox(inbox::Inbox),
    /// Show usage counts of a tenant by minute, hour or day.
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::Usage),
    /// Check that a server can answer calls.
    #[command(after_help = health::EXAMPLES)]
    Health(Flags<Server>),
    /// Measure a running server under load.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Run),
    /// Monitor a server: call rate, latency, errors and resources in use.
    #[command(after_help = top::EXAMPLES)]
    Top(Flags<Top>),
    /// Print the OpenAPI document of the API over HTTP. Needs no server.
    #[command(after_help = openapi::EXAMPLES)]
    Openapi(openapi::Openapi),
    /// Print a shell completion script.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Completions),
    /// Write a manual page for each command into a folder.
    #[command(hide = true, after_help = man::EXAMPLES)]
    Man(man::Man),
}
