//! The arguments of `polynym store …`, which needs no server: the program's main runs it, since
//! stores are not for clients.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config;
use crate::config::{Flags, StoreReport};

pub(super) const EXAMPLES: &str = "\
Examples:
  polynym store init --store mongodb://127.0.0.1:27017/polynym
  polynym store status
  polynym store verify --mend
  polynym store upgrade";

const INIT_EXAMPLES: &str = "\
Examples:
  polynym store init --store mongodb://127.0.0.1:27017/polynym
  polynym store init --store mongodb://router1,router2/polynym
  polynym store init --store embedded:/var/lib/polynym

It says what it did and what was there already, and can be run again at any time.";

const STATUS_EXAMPLES: &str = "\
Examples:
  polynym store status --store embedded:/var/lib/polynym
  polynym store status --store mongodb://127.0.0.1:27017/polynym --json

Exit status: 0 it can be served; 1 something is missing or in the way, or it could not be read.";

const UPGRADE_EXAMPLES: &str = "\
Examples:
  polynym store upgrade --store embedded:/var/lib/polynym
  polynym store upgrade --store mongodb://127.0.0.1:27017/polynym

A folder must not be in use. A database may be: servers whose program does not support the new
versions stop writing. A run that was broken off is finished by the next.";

const CONFIRM_EXAMPLES: &str = "\
Examples:
  polynym store confirm-clock --store embedded:/var/lib/polynym

A server takes a clock that is behind the last time seen, or more than a day ahead of it, for
wrong. Where it is right, stop the server, run this, and start the server.";

const RESTORE_EXAMPLES: &str = "\
Example:
  polynym store restore polynym-2026-01-31.redb --store embedded:/var/lib/polynym";

const VERIFY_EXAMPLES: &str = "\
Examples:
  polynym store verify --store embedded:/var/lib/polynym
  polynym store verify --store mongodb://127.0.0.1:27017/polynym --mend
  polynym store verify --json --show-keys > findings.jsonl

Exit status: 0 no inconsistency, or all were repaired; 1 some are left, or reading failed.";

/// `polynym store`.
#[derive(Subcommand)]
pub enum Store {
    /// Make a store: what a database of MongoDB needs, or an empty folder.
    #[command(after_help = INIT_EXAMPLES)]
    Init(Init),
    /// Show what is where, and what is missing.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Status),
    /// Take a store to the newest versions that this program supports.
    #[command(after_help = UPGRADE_EXAMPLES)]
    Upgrade(Upgrade),
    /// Confirm that this machine's clock is right, for an embedded store that doubts it.
    #[command(after_help = CONFIRM_EXAMPLES)]
    ConfirmClock(ConfirmClock),
    /// Find users and claims that do not fit together.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Verify),
    /// Make an embedded store of a backup.
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(Restore),
}

/// `polynym restore`.
#[derive(Args)]
pub struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Which store: a folder that is empty or not there.
    #[command(flatten)]
    pub settings: Flags<config::Store>,
}

/// `polynym store init`.
#[derive(Args)]
pub struct Init {
    /// Has no effect any more: identifiers of all tenants are spread.
    #[arg(long = "tenant", value_name = "TENANT", hide = true)]
    pub tenants: Vec<String>,
    /// On a sharded cluster: leave it to the balancer to spread users and requests over the shards.
    #[arg(long)]
    pub no_spread: bool,
    /// Which store.
    #[command(flatten)]
    pub settings: Flags<config::Store>,
}

/// `polynym store status`.
#[derive(Args)]
pub struct Status {
    /// Which store, and how to print.
    #[command(flatten)]
    pub settings: Flags<StoreReport>,
}

/// `polynym store upgrade`.
#[derive(Args)]
pub struct Upgrade {
    /// Which store.
    #[command(flatten)]
    pub settings: Flags<config::Store>,
}

/// `polynym store confirm-clock`.
#[derive(Args)]
pub struct ConfirmClock {
    /// Which store.
    #[command(flatten)]
    pub settings: Flags<config::Store>,
}

/// `polynym store verify`.
#[derive(Args)]
pub struct Verify {
    /// Repair what can be repaired: claims are made, given to their users, or deleted, as the
    /// users say.
    #[arg(long)]
    pub mend: bool,
    /// Show identity keys, which are personal data, instead of hashes that are stable within one
    /// run.
    #[arg(long)]
    pub show_keys: bool,
    /// Which store, and how to print.
    #[command(flatten)]
    pub settings: Flags<StoreReport>,
}
