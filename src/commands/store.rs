//! `polynym store …`: picks the store and prints its reports. The stores do the work.

mod status;
mod verify;

use std::path::Path;

use polynym::cli::Failure;
use polynym::cli::output;
use polynym::cli::store::{Init, Restore, Store, Upgrade};
use polynym::config::{self, StoreChoice};
use polynym::store::embedded::{self, Embedded};
use polynym::store::mongo::{self, InitOptions};
use polynym::telemetry;
use tokio::runtime::Builder;

/// Runs one of the commands.
///
/// # Errors
/// What the command found wrong, or why it could not be run.
pub fn run(command: Store) -> Result<(), Failure> {
    // A panic in a damaged store must not print the data that it has read.
    telemetry::init(false, "error").map_err(|error| Failure::Other(error.to_string()))?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        match command {
            Store::Init(command) => init(&command).await,
            Store::Status(command) => status::run(&command.settings.load()?).await,
            Store::Upgrade(command) => upgrade(&command).await,
            Store::ConfirmClock(command) => confirm_clock(&command.settings.load()?),
            Store::Restore(command) => restore(&command),
            Store::Verify(command) => {
                verify::run(&command.settings.load()?, command.mend, command.show_keys).await
            }
        }
    })
}

async fn init(command: &Init) -> Result<(), Failure> {
    let settings = command.settings.load()?;
    if !command.tenants.is_empty() {
        eprintln!(
            "--tenant has no effect any more: identifiers of all tenants are spread over the shards"
        );
    }

    match &settings.store {
        StoreChoice::Embedded(folder) => init_folder(folder),
        StoreChoice::Mongo(uri) => {
            // Whether anybody reads it does not matter to what is made.
            let say = |line: &str| drop(output::print(&format!("{line}\n")));
            mongo::init(uri.as_str(), &InitOptions { spread: !command.no_spread }, &say)
                .await
                .map_err(|error| other(format!("{uri}: {error}")))
        }
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

async fn upgrade(command: &Upgrade) -> Result<(), Failure> {
    // Whether anybody reads it does not matter to what is done.
    let say = |line: &str| drop(output::print(&format!("{line}\n")));
    match &command.settings.load()?.store {
        StoreChoice::Embedded(folder) => embedded::upgrade(folder, &say).await.map_err(other),
        StoreChoice::Mongo(uri) => mongo::upgrade(uri.as_str(), &say)
            .await
            .map_err(|error| other(format!("{uri}: {error}"))),
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

fn init_folder(folder: &Path) -> Result<(), Failure> {
    let was_there = embedded::status(folder).is_ok();
    Embedded::open(folder, embedded::Options::default()).map_err(other)?;
    let what = if was_there { "was a store before" } else { "is a store now" };
    output::print(&format!("{} {what}\n", folder.display()))
}

fn restore(command: &Restore) -> Result<(), Failure> {
    match &command.settings.load()?.store {
        StoreChoice::Embedded(folder) => {
            embedded::restore(&command.file, folder).map_err(other)?;
            output::print(&format!("{} is restored\n", folder.display()))
        }
        StoreChoice::Mongo(_) => {
            Err(other("a backup is of an embedded store: name one with --store embedded:DIR"))
        }
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

fn confirm_clock(settings: &config::Store) -> Result<(), Failure> {
    match &settings.store {
        StoreChoice::Embedded(folder) => {
            embedded::confirm_clock(folder).map_err(other)?;
            output::print(&format!(
                "{}: this machine's clock is taken for right\n",
                folder.display()
            ))
        }
        StoreChoice::Mongo(_) => Err(other(
            "servers hold their clocks against the database's: set the one that is wrong",
        )),
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

fn no_temporary() -> Failure {
    other("there is nothing to see in a temporary store: name one with --store")
}

fn other(error: impl ToString) -> Failure {
    Failure::Other(error.to_string())
}
