//! The command line: its arguments, one file for each subcommand, and how answers and failures are
//! shown. Everything here but `id`, `token` and `completions` is a client of a server's API;
//! `serve` and `store` are run by the program's main.

mod arguments;
mod attribute;
mod attributes;
mod bench;
mod client;
mod completions;
mod confirm;
mod event;
mod failure;
mod files;
mod id;
mod identifier;
mod identity;
mod inbox;
pub mod output;
mod pages;
mod renormalize;
mod report;
mod resolve;
pub mod store;
mod tenant;
mod time;
mod token;
mod top;
mod transfer;
mod usage;
mod user;
mod view;
mod watch;
mod who;

pub use arguments::{Arguments, Command};
pub use failure::Failure;

use clap::CommandFactory;

use crate::config::{Flags, Serve};

/// Runs a command, all of whose output goes to standard output. `serve` is given the settings of a
/// server to run, `store` what to do with a store.
///
/// # Errors
/// What [`Failure::report`] is to tell.
pub fn run(
    command: Command,
    serve: impl FnOnce(&Flags<Serve>) -> Result<(), Failure>,
    store: impl FnOnce(store::Store) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match command {
        Command::Serve(flags) => serve(&flags),
        Command::Store(command) => store(command),
        Command::Resolve(command) => client::block_on(resolve::run(command)),
        Command::User(command) => client::block_on(user::run(command)),
        Command::Watch(command) => client::block_on(watch::run(command)),
        Command::Identity(command) => client::block_on(identity::run(command)),
        Command::Attribute(command) => client::block_on(attributes::run(command)),
        Command::Tenant(command) => client::block_on(tenant::run(command)),
        Command::Inbox(command) => client::block_on(inbox::run(command)),
        Command::Usage(command) => client::block_on(usage::run(command)),
        Command::Import(command) => client::block_on(transfer::import::run(command)),
        Command::Export(command) => client::block_on(transfer::export::run(command)),
        Command::Backup(command) => client::block_on(transfer::backup::run(command)),
        Command::Restore(command) => store(store::Store::Restore(command)),
        Command::Sample(command) => transfer::sample::run(&command),
        Command::Renormalize(command) => client::block_on(renormalize::run(command)),
        Command::Token(command) => token::run(command),
        Command::Id(command) => id::run(command),
        Command::Bench(command) => client::block_on(bench::run(command)),
        Command::Top(flags) => client::block_on(top::run(flags)),
        Command::Completions(command) => completions::run(&command, Arguments::command()),
    }
}
