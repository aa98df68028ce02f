//! fjall with one writer, syncing its journal at each commit.

use std::path::Path;
use std::time::Duration;

use fjall::{KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace};

use crate::data::User;
use crate::engine::{Engine, Result};

pub struct Store {
    database: SingleWriterTxDatabase,
    users: SingleWriterTxKeyspace,
    claims: SingleWriterTxKeyspace,
}

impl Store {
    pub fn open(folder: &Path, cache_bytes: u64) -> Result<Self> {
        let database = SingleWriterTxDatabase::builder(folder).cache_size(cache_bytes).open()?;
        let users = database.keyspace("users", KeyspaceCreateOptions::default)?;
        let claims = database.keyspace("claims", KeyspaceCreateOptions::default)?;
        Ok(Self { database, users, claims })
    }
}

impl Engine for Store {
    fn create(&mut self, users: &[User]) -> Result<()> {
        let mut transaction = self.database.write_tx().durability(Some(PersistMode::SyncData));
        for user in users {
            for key in &user.keys {
                if transaction.contains_key(&self.claims, key)? {
                    return Err("a key is taken".into());
                }
                transaction.insert(&self.claims, key.as_str(), user.claim());
            }
            transaction.insert(&self.users, user.id, user.document.as_slice());
        }
        Ok(transaction.commit()?)
    }

    fn resolve(&self, keys: &[String], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let snapshot = self.database.read_tx();
        for key in keys {
            let claim = snapshot.get(&self.claims, key)?.ok_or("no claim")?;
            see(&snapshot.get(&self.users, &claim[..16])?.ok_or("no user")?);
        }
        Ok(())
    }

    fn settle(&self) {
        let database = self.database.inner();
        let mut quiet = 0;
        while quiet < 5 {
            std::thread::sleep(Duration::from_millis(100));
            let busy = database.outstanding_flushes() + database.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
        }
    }
}
