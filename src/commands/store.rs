//! `polynym store …`: opens the store and prints its reports.

mod failures;
mod status;
mod verify;

use std::path::Path;

use polynym::arguments::store::{Init, Restore, Store, Upgrade};
use polynym::settings::{StoreChoice, StoreSettings};
use polynym::telemetry;
use polynym_cli::Failure;
use polynym_cli::output;
use polynym_embedded::{self as embedded, Compacted, Embedded, FileSize, Restored};
use polynym_mongodb::{self as mongo, InitOptions};
use polynym_presentation::count;
use tokio::runtime::Builder;

use failures::{no_temporary, other};

/// Runs one of the commands.
///
/// # Errors
/// The command failed, or found problems.
pub fn run(command: Store) -> Result<(), Failure> {
    // A panic in a damaged store must not print data.
    telemetry::init(false, "error", false).map_err(|error| Failure::Other(error.to_string()))?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        match command {
            Store::Init(command) => init(&command).await,
            Store::Status(command) => status::run(&command.settings.load()?).await,
            Store::Upgrade(command) => upgrade(&command).await,
            Store::ConfirmClock(command) => confirm_clock(&command.settings.load()?),
            Store::Compact(command) => compact(&command.settings.load()?),
            Store::Restore(command) => restore(&command),
            Store::Verify(command) => verify::run(&command).await,
        }
    })
}

async fn init(command: &Init) -> Result<(), Failure> {
    let settings = command.settings.load()?;
    if !command.tenants.is_empty() {
        eprintln!("--tenant has no effect: identifiers of all tenants are spread over the shards");
    }

    match &settings.store {
        StoreChoice::Embedded(folder) => init_folder(folder),
        StoreChoice::Mongo(uri) => {
            mongo::init(uri.as_str(), &InitOptions { spread: !command.no_spread }, &print_line)
                .await
                .map_err(|error| other(format!("{uri}: {error}")))
        }
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

async fn upgrade(command: &Upgrade) -> Result<(), Failure> {
    match &command.settings.load()?.store {
        StoreChoice::Embedded(folder) => {
            embedded::upgrade(folder, &print_line).await.map_err(other)
        }
        StoreChoice::Mongo(uri) => mongo::upgrade(uri.as_str(), &print_line)
            .await
            .map_err(|error| other(format!("{uri}: {error}"))),
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

/// Prints a line of progress. A closed standard output does not stop the command.
fn print_line(line: &str) {
    let _ = output::print(&format!("{line}\n"));
}

fn init_folder(folder: &Path) -> Result<(), Failure> {
    let existed = embedded::status(folder).is_ok();
    Embedded::open(folder, embedded::Options::default()).map_err(other)?;
    let what = if existed { "was a store before" } else { "is a store now" };
    output::print(&format!("{} {what}\n", folder.display()))
}

fn compact(settings: &StoreSettings) -> Result<(), Failure> {
    match &settings.store {
        StoreChoice::Embedded(folder) => {
            let step = |step: &str| eprintln!("{step}");
            let Compacted { before, after } = embedded::compact(folder, &step).map_err(other)?;
            let [before, after] = [before, after].map(size);
            output::print(&format!("{}: {before} before, {after} after\n", folder.display()))
        }
        StoreChoice::Mongo(_) => Err(other(
            "only an embedded store is compacted: name one with --store embedded:FOLDER; \
             MongoDB uses the space of deleted documents again, and has a command `compact`",
        )),
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

/// The size of a file, and what it takes of the disk.
fn size(size: FileSize) -> String {
    format!("{} bytes ({} on the disk)", size.bytes, count::bytes(size.on_disk))
}

fn restore(command: &Restore) -> Result<(), Failure> {
    match &command.settings.load()?.store {
        StoreChoice::Embedded(folder) => {
            let restored = embedded::restore(&command.file, folder).map_err(other)?;
            warn_of(restored);
            output::print(&format!("{} is restored\n", folder.display()))
        }
        StoreChoice::Mongo(_) => Err(other(
            "only an embedded store can be restored: name one with --store embedded:FOLDER",
        )),
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

/// Warns of what a restore could not check, and of what was damaged before the backup.
fn warn_of(restored: Restored) {
    if !restored.had_checksum {
        eprintln!(
            "the backup has no checksum, because an earlier program wrote it: only its pages were \
             checked; run `polynym store verify`"
        );
    }
    if restored.unreadable_users > 0 {
        eprintln!(
            "the records of {} users cannot be read, and could not when the backup was made; \
             `polynym store verify` lists them",
            restored.unreadable_users
        );
    }
}

fn confirm_clock(settings: &StoreSettings) -> Result<(), Failure> {
    match &settings.store {
        StoreChoice::Embedded(folder) => {
            embedded::confirm_clock(folder).map_err(other)?;
            output::print(&format!("{}: this machine's clock is confirmed\n", folder.display()))
        }
        StoreChoice::Mongo(_) => {
            Err(other("servers compare their clocks with the database's: correct the wrong one"))
        }
        StoreChoice::Temporary => Err(no_temporary()),
    }
}
