//! redb as Polynym uses it: with quick repair, and tables opened once a snapshot.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::data::{Claim, User};
use crate::engine::{Engine, Result};

const USERS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("users");
const CLAIMS: TableDefinition<'_, &[u8], &Claim> = TableDefinition::new("claims");

pub struct Store(Database);

impl Store {
    pub fn open(folder: &Path, cache_bytes: u64) -> Result<Self> {
        Ok(Self(Database::builder().set_cache_size(cache_bytes as usize).create(folder.join("redb"))?))
    }
}

impl Engine for Store {
    fn create(&mut self, users: &[User]) -> Result<()> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_quick_repair(true);
        let mut documents = transaction.open_table(USERS)?;
        let mut claims = transaction.open_table(CLAIMS)?;
        for user in users {
            for key in &user.keys {
                if claims.get(key.as_bytes())?.is_some() {
                    return Err("a key is taken".into());
                }
                claims.insert(key.as_bytes(), &user.claim())?;
            }
            documents.insert(user.id.as_slice(), user.document.as_slice())?;
        }
        drop((documents, claims));
        Ok(transaction.commit()?)
    }

    fn resolve(&self, keys: &[String], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let transaction = self.0.begin_read()?;
        let (users, claims) = (transaction.open_table(USERS)?, transaction.open_table(CLAIMS)?);
        for key in keys {
            let claim = claims.get(key.as_bytes())?.ok_or("no claim")?;
            see(users.get(&claim.value()[..16])?.ok_or("no user")?.value());
        }
        Ok(())
    }
}
