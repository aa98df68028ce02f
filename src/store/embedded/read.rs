//! Point reads on a snapshot: the state after the last group of mutations that is safe on disk.

use std::sync::Arc;

use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTableMetadata};

use super::error::Fault;
use super::hints::Hints;
use super::schema::{IDENTITIES, USERS, resolves_to, wire_user};
use crate::directory::{Found, Tenant, WireUser};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// The users and claims at one moment. Opening the tables once a commit instead of once a look-up saves a look-up most
/// of its time.
pub struct Snapshot {
    users: ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    identities: ReadOnlyTable<&'static [u8], &'static [u8]>,
    hints: Arc<Hints>,
}

impl Snapshot {
    /// The present state. Guesses are taken over from the snapshot `before`, until there are too many keys for them;
    /// they take at most `hint_bytes`.
    pub fn new(database: &Database, before: Option<&Self>, hint_bytes: usize) -> Result<Self, Fault> {
        let transaction = database.begin_read()?;
        let users = transaction.open_table(USERS)?;
        let identities = transaction.open_table(IDENTITIES)?;
        let keys = identities.len()?;
        let hints = match before.map(|snapshot| &snapshot.hints) {
            Some(hints) if !hints.is_small_for(keys) => hints.clone(),
            _ => Arc::new(Hints::new(keys, hint_bytes)),
        };
        Ok(Self { users, identities, hints })
    }

    /// The user who owns `key`.
    pub fn resolve(&self, key: &IdentityKey) -> Result<Option<Found>, Fault> {
        if let Some(guess) = self.hints.guess(key)
            // What fails here fails below too, if it is the owner that cannot be read.
            && let Ok(Some(user)) = self.user(guess)
            && let Some(found) = Found::new(user, key)
        {
            return Ok(Some(found));
        }
        let claim = self.identities.get(key.as_str().as_bytes())?;
        let owner = claim.map(|claim| resolves_to(claim.value())).transpose()?.flatten();
        let Some(owner) = owner else {
            return Ok(None);
        };
        match self.user(owner)?.and_then(|user| Found::new(user, key)) {
            None => Err(Fault::damaged("a claim of a user who does not list it")),
            found => {
                self.hints.learn(key, owner);
                Ok(found)
            }
        }
    }

    /// The user of `tenant` with this id.
    pub fn get(&self, tenant: &Tenant, id: LocalityId) -> Result<Option<WireUser>, Fault> {
        Ok(self.user(id)?.filter(|user| user.tenant() == tenant.as_str().as_bytes()))
    }

    fn user(&self, id: LocalityId) -> Result<Option<WireUser>, Fault> {
        self.users.get(id.as_bytes())?.map(|record| wire_user(record.value())).transpose()
    }
}
