//! The command line: its arguments, one module for each subcommand, and the output of answers and
//! failures. The commands in `offline` need no server; all others are clients of a server's API.
//! The program adds the commands that open a store.

mod apply;
mod attribute;
mod bench;
mod bulk;
mod client;
mod command;
pub mod config;
mod delivery;
mod failure;
mod files;
mod identity;
mod inbox;
mod offline;
pub mod output;
mod report;
mod resolve;
pub mod sample;
mod tenant;
mod text;
mod top;
mod transfer;
mod user;
mod watch;

pub use command::Command;
pub use failure::Failure;
pub use transfer::backup::EXAMPLES as BACKUP_EXAMPLES;

use offline::{completions, id, man, openapi, token};

/// Runs a command, which prints its results to standard output. `program` is the command line of
/// the whole program.
///
/// # Errors
/// The failure, for [`Failure::report`].
pub fn run(command: Command, program: clap::Command) -> Result<(), Failure> {
    match command {
        Command::Resolve(command) => client::block_on(resolve::run(command)),
        Command::Find(command) => client::block_on(user::find::run(command)),
        Command::User(command) => client::block_on(user::run(command)),
        Command::Watch(command) => client::block_on(watch::run(command)),
        Command::Bulk(command) => client::block_on(bulk::run(command)),
        Command::Delivery(command) => client::block_on(delivery::run(command)),
        Command::Identity(command) => client::block_on(identity::run(command)),
        Command::Attribute(command) => client::block_on(attribute::run(command)),
        Command::Tenant(command) => client::block_on(tenant::run(command)),
        Command::Apply(command) => client::block_on(apply::run(command)),
        Command::Get(command) => client::block_on(apply::get::run(command)),
        Command::Inbox(command) => client::block_on(inbox::run(command)),
        Command::Usage(command) => client::block_on(tenant::usage::run(command)),
        Command::Import(command) => client::block_on(transfer::import::run(command)),
        Command::Undo(command) => client::block_on(transfer::undo::run(command)),
        Command::Export(command) => client::block_on(transfer::export::run(command)),
        Command::Backup(command) => client::block_on(transfer::backup::run(command)),
        Command::Sample(command) => transfer::sample::run(&command),
        Command::Renormalize(command) => client::block_on(tenant::renormalize::run(command)),
        Command::Token(command) => token::run(command),
        Command::Id(command) => id::run(command),
        Command::Openapi(command) => openapi::run(&command),
        Command::Health(flags) => client::block_on(client::health::run(flags)),
        Command::Bench(command) => client::block_on(bench::run(command)),
        Command::Top(flags) => client::block_on(top::run(flags)),
        Command::Completions(command) => completions::run(&command, program),
        Command::Man(command) => man::run(&command, program),
    }
}
