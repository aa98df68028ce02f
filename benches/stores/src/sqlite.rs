//! SQLite with a write-ahead log that is synced at each commit, prepared statements, and a memory
//! map for reads.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::Connection;

use crate::data::User;
use crate::engine::{Engine, Result};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS users (id BLOB PRIMARY KEY, document BLOB) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, claim BLOB) WITHOUT ROWID;";

pub struct Store {
    file: PathBuf,
    cache_bytes: u64,
    writer: Mutex<Connection>,
}

impl Store {
    pub fn open(folder: &Path, cache_bytes: u64) -> Result<Self> {
        let file = folder.join("sqlite");
        let writer = connect(&file, cache_bytes)?;
        writer.execute_batch(TABLES)?;
        Ok(Self { file, cache_bytes, writer: Mutex::new(writer) })
    }
}

fn connect(file: &Path, cache_bytes: u64) -> Result<Connection> {
    let connection = Connection::open(file)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = {cache_bytes};"
    ))?;
    Ok(connection)
}

impl Engine for Store {
    fn create(&mut self, users: &[User]) -> Result<()> {
        let transaction = self.writer.get_mut().map_err(|_| "a writer panicked")?.transaction()?;
        {
            // The primary keys say whether a key is taken.
            let mut documents = transaction.prepare_cached("INSERT INTO users VALUES (?1, ?2)")?;
            let mut claims = transaction.prepare_cached("INSERT INTO claims VALUES (?1, ?2)")?;
            for user in users {
                for key in &user.keys {
                    claims.execute((key.as_bytes(), user.claim().as_slice()))?;
                }
                documents.execute((user.id.as_slice(), user.document.as_slice()))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn resolve(&self, keys: &[String], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let connection = connect(&self.file, self.cache_bytes)?;
        connection.execute_batch("BEGIN")?;
        let mut claims = connection.prepare("SELECT claim FROM claims WHERE key = ?1")?;
        let mut users = connection.prepare("SELECT document FROM users WHERE id = ?1")?;
        for key in keys {
            let mut claim = claims.query([key.as_bytes()])?;
            let owner = &claim.next()?.ok_or("no claim")?.get_ref(0)?.as_blob()?[..16];
            let mut user = users.query([owner])?;
            see(user.next()?.ok_or("no user")?.get_ref(0)?.as_blob()?);
        }
        Ok(())
    }
}
