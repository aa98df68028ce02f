//! The arguments of `polynym store …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use polynym_cli::config::Flags;

use crate::settings::{StoreReport, StoreSettings};

pub(super) const EXAMPLES: &str = "\
Examples:
  polynym store init --store mongodb://127.0.0.1:27017/polynym
  polynym store status
  polynym store verify --repair
  polynym store upgrade";

const INIT_EXAMPLES: &str = "\
Examples:
  polynym store init --store mongodb://127.0.0.1:27017/polynym
  polynym store init --store mongodb://router1,router2/polynym
  polynym store init --store embedded:/var/lib/polynym

Prints what it created and what existed. Safe to run again.";

const STATUS_EXAMPLES: &str = "\
Examples:
  polynym store status --store embedded:/var/lib/polynym
  polynym store status --store mongodb://127.0.0.1:27017/polynym --json

Exit status: 0 a server can use the store; 1 it cannot, or the store could not be read.";

const UPGRADE_EXAMPLES: &str = "\
Examples:
  polynym store upgrade --store embedded:/var/lib/polynym
  polynym store upgrade --store mongodb://127.0.0.1:27017/polynym

An embedded store must not be in use. A database may be: servers that do not support the new
versions stop writing. The next run completes an interrupted one.";

const CONFIRM_EXAMPLES: &str = "\
Examples:
  polynym store confirm-clock --store embedded:/var/lib/polynym

A server doubts a clock that is behind the last time seen, or more than a day ahead of it. If the
clock is right, stop the server, run this command, and start the server.";

const RESTORE_EXAMPLES: &str = "\
Example:
  polynym store restore polynym-2026-01-31.redb --store embedded:/var/lib/polynym

The backup's checksum and all its pages are checked first: nothing is created from a damaged one.
The store gets the owner of the folder, or of the folder in which it is created.";

const COMPACT_EXAMPLES: &str = "\
Examples:
  polynym store compact --store embedded:/var/lib/polynym
  sudo -u polynym polynym store compact --store embedded:/var/lib/polynym

The store must not be in use. Its content is checked and copied to a new file, which takes the place
of the old one at the end: until then the disk needs space for both. A command that is interrupted
or killed changes nothing; the next one removes what it has left.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  polynym store verify --store embedded:/var/lib/polynym
  polynym store verify --store mongodb://127.0.0.1:27017/polynym --repair
  polynym store verify --json --show-keys > findings.jsonl

Exit status: 0 no inconsistencies remain; 1 some remain, or the store could not be read.";

/// `polynym store`.
#[derive(Subcommand)]
pub enum Store {
    /// Create a store: the collections and indexes in MongoDB, or an empty embedded store.
    #[command(after_help = INIT_EXAMPLES)]
    Init(Init),
    /// Show the state of a store, and what it lacks.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Status),
    /// Upgrade a store to the latest versions that this program supports.
    #[command(after_help = UPGRADE_EXAMPLES)]
    Upgrade(Upgrade),
    /// Confirm this machine's clock, if an embedded store doubts it.
    #[command(after_help = CONFIRM_EXAMPLES)]
    ConfirmClock(ConfirmClock),
    /// Find inconsistencies between users and claims.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Verify),
    /// Return the free space in the file of an embedded store to the disk.
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(Compact),
    /// Restore an embedded store from a backup.
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(Restore),
}

/// `polynym restore`.
#[derive(Args)]
pub struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The store: a folder that is empty or does not exist.
    #[command(flatten)]
    pub settings: Flags<StoreSettings>,
}

/// `polynym store init`.
#[derive(Args)]
pub struct Init {
    /// Has no effect: identifiers of all tenants are spread over the shards.
    #[arg(long = "tenant", value_name = "TENANT", hide = true)]
    pub tenants: Vec<String>,
    /// On a sharded cluster, let the balancer spread users and requests over the shards.
    #[arg(long)]
    pub no_spread: bool,
    /// The store.
    #[command(flatten)]
    pub settings: Flags<StoreSettings>,
}

/// `polynym store status`.
#[derive(Args)]
pub struct Status {
    /// The store, and the output.
    #[command(flatten)]
    pub settings: Flags<StoreReport>,
}

/// `polynym store upgrade`.
#[derive(Args)]
pub struct Upgrade {
    /// The store.
    #[command(flatten)]
    pub settings: Flags<StoreSettings>,
}

/// `polynym store confirm-clock`.
#[derive(Args)]
pub struct ConfirmClock {
    /// The store.
    #[command(flatten)]
    pub settings: Flags<StoreSettings>,
}

/// `polynym store compact`.
#[derive(Args)]
pub struct Compact {
    /// The store.
    #[command(flatten)]
    pub settings: Flags<StoreSettings>,
}

/// `polynym store verify`.
#[derive(Args)]
pub struct Verify {
    /// Repair claims from the users: create, reassign or delete them.
    #[arg(long, alias = "mend")]
    pub repair: bool,
    /// Show identity keys, which are personal data, instead of hashes that hold for one run.
    #[arg(long)]
    pub show_keys: bool,
    /// The store, and the output.
    #[command(flatten)]
    pub settings: Flags<StoreReport>,
}
