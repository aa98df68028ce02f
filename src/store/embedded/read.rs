//! Point reads on a snapshot: the state after the last group of mutations that is safe on disk.

use redb::{Database, ReadOnlyTable, ReadableDatabase};

use super::error::Fault;
use super::schema::{Claim, IDENTITIES, USERS, decode_user};
use crate::directory::{Tenant, User};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// The users and claims at one moment. Opening the tables once a commit instead of once a look-up saves a look-up most
/// of its time.
pub struct Snapshot {
    users: ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    identities: ReadOnlyTable<&'static [u8], &'static [u8; Claim::BYTES]>,
}

impl Snapshot {
    pub fn new(database: &Database) -> Result<Self, Fault> {
        let transaction = database.begin_read()?;
        let users = transaction.open_table(USERS)?;
        let identities = transaction.open_table(IDENTITIES)?;
        Ok(Self { users, identities })
    }

    /// The user who owns `key`.
    pub fn resolve(&self, key: &IdentityKey) -> Result<Option<User>, Fault> {
        let Some(claim) = self.identities.get(key.as_str().as_bytes())? else {
            return Ok(None);
        };
        let user = self.user(Claim::owner(claim.value()))?;
        match user.filter(|user| user.owns(key)) {
            None => Err(Fault::damaged("a claim of a user who does not list it")),
            owner => Ok(owner),
        }
    }

    /// The user of `tenant` with this id.
    pub fn get(&self, tenant: &Tenant, id: LocalityId) -> Result<Option<User>, Fault> {
        Ok(self.user(id)?.filter(|user| user.tenant == *tenant))
    }

    fn user(&self, id: LocalityId) -> Result<Option<User>, Fault> {
        let record = self.users.get(id.as_bytes())?;
        record.map(|record| decode_user(id, record.value())).transpose()
    }
}
