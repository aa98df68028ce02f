//! What each store has to do: durable groups of creates, and look-ups of a claim and then its user
//! on one snapshot.

use std::error::Error;
use std::path::Path;

use crate::data::User;
use crate::{fjall, lmdb, redb, sqlite};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub trait Engine: Sync {
    /// Creates users, none of whose keys may be taken, in one transaction that is on disk when this
    /// returns.
    fn create(&mut self, users: &[User]) -> Result<()>;
    /// Shows the document of the user of each key, all on one snapshot.
    fn resolve(&self, keys: &[String], see: &mut dyn FnMut(&[u8])) -> Result<()>;
    /// Waits for what the store still does in the background.
    fn settle(&self) {}
}

#[derive(Clone, Copy)]
pub enum Kind {
    Redb,
    Lmdb,
    Fjall,
    Sqlite,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Redb, Self::Lmdb, Self::Fjall, Self::Sqlite];

    pub fn name(self) -> &'static str {
        match self {
            Self::Redb => "redb",
            Self::Lmdb => "LMDB",
            Self::Fjall => "fjall",
            Self::Sqlite => "SQLite",
        }
    }

    pub fn open(self, folder: &Path, cache_bytes: u64) -> Result<Box<dyn Engine>> {
        Ok(match self {
            Self::Redb => Box::new(redb::Store::open(folder, cache_bytes)?),
            Self::Lmdb => Box::new(lmdb::Store::open(folder)?),
            Self::Fjall => Box::new(fjall::Store::open(folder, cache_bytes)?),
            Self::Sqlite => Box::new(sqlite::Store::open(folder, cache_bytes)?),
        })
    }
}
