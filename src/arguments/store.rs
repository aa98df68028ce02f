//! The arguments of `polynym store …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use polynym_cli::config::Flags;
use polynym_directory::Tenant;

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
  polynym store verify --tenant acme
  polynym store verify --sample 2%
  polynym store verify --sample 10000 --seed 7

A sample has each user, claim and ended ownership with the same probability: the same ones for the
same seed, which is printed. Of a tenant or a sample, notices, bulk changes and stray entries of the
search index are not checked; nor does a sample show that two users list one identity.

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
    /// Check this tenant alone.
    #[arg(long, value_name = "TENANT", value_parser = tenant)]
    pub tenant: Option<Tenant>,
    /// Check a random part: about this number of users, or this share of all records.
    #[arg(long, value_name = "N|P%", value_parser = sample_size, conflicts_with = "repair")]
    pub sample: Option<SampleSize>,
    /// The seed of the sample, by default a random one.
    #[arg(long, value_name = "N", requires = "sample")]
    pub seed: Option<u64>,
    /// The store, and the output.
    #[command(flatten)]
    pub settings: Flags<StoreReport>,
}

/// The size of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleSize {
    /// A number of users.
    Users(u64),
    /// A share of all records, above 0 and up to 1.
    Share(f64),
}

impl SampleSize {
    /// The share of a store with this number of users.
    pub fn share_of(self, users: u64) -> f64 {
        match self {
            Self::Users(wanted) => (wanted as f64 / users.max(1) as f64).min(1.0),
            Self::Share(share) => share,
        }
    }
}

fn sample_size(text: &str) -> Result<SampleSize, String> {
    let size = match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(percent) => {
            let share = percent.map(|percent| percent / 100.0).ok();
            share.filter(|share| *share > 0.0 && *share <= 1.0).map(SampleSize::Share)
        }
        None => text.parse().ok().filter(|users| *users > 0).map(SampleSize::Users),
    };
    size.ok_or_else(|| "write a number of users, as in 10000, or a share, as in 2%".to_owned())
}

fn tenant(text: &str) -> Result<Tenant, String> {
    Tenant::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_number_or_a_share() {
        assert_eq!(sample_size("10000"), Ok(SampleSize::Users(10_000)));
        assert_eq!(sample_size("2.5%"), Ok(SampleSize::Share(0.025)));
        for wrong in ["", "0", "0%", "101%", "-1", "NaN%", "many"] {
            assert!(sample_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(SampleSize::Users(50).share_of(200), 0.25);
        assert_eq!(SampleSize::Users(50).share_of(0), 1.0);
    }
}
