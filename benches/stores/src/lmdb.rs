//! LMDB through heed, with its default of a sync a commit. The kernel's page cache is its cache.

use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions};

use crate::data::User;
use crate::engine::{Engine, Result};

/// The address space it may grow into.
const MAP: usize = 16 << 30;

pub struct Store {
    env: Env,
    users: Database<'static, Bytes, Bytes>,
    claims: Database<'static, Bytes, Bytes>,
}

impl Store {
    pub fn open(folder: &Path) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP).max_dbs(2);
        #[expect(unsafe_code, reason = "nobody else has the folder, which is new and temporary")]
        let env = unsafe { options.open(folder)? };
        let tables = env.create_databases_and_commit(env.write_txn()?, |opener, transaction| {
            let users = opener.create_database(transaction, Some("users"))?;
            let claims = opener.create_database(transaction, Some("claims"))?;
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((users, claims)))
        })?;
        let (users, claims) = tables.unwrap_commit();
        Ok(Self { env, users, claims })
    }
}

impl Engine for Store {
    fn create(&mut self, users: &[User]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for user in users {
            for key in &user.keys {
                if self.claims.get(&transaction, key.as_bytes())?.is_some() {
                    return Err("a key is taken".into());
                }
                self.claims.put(&mut transaction, key.as_bytes(), &user.claim())?;
            }
            self.users.put(&mut transaction, &user.id, &user.document)?;
        }
        Ok(transaction.commit()?)
    }

    fn resolve(&self, keys: &[String], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let transaction = self.env.read_txn()?;
        for key in keys {
            let claim = self.claims.get(&transaction, key.as_bytes())?.ok_or("no claim")?;
            see(self.users.get(&transaction, &claim[..16])?.ok_or("no user")?);
        }
        Ok(())
    }
}
