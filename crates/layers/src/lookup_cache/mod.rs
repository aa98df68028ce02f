//! A cache of answers to look-ups, for callers who accept stale answers (`max_staleness`).
//! `entries` stores owners by keys and users by ids in bounded memory, `own_writes` stores the
//! times of this server's own writes, and `layer` answers look-ups.

mod entries;
mod instant;
mod layer;
mod own_writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;

pub use layer::{AGE, BYTES, Cached, LOOK_UPS};

use entries::{Entries, Owner};
use instant::CacheInstant;
use own_writes::OwnWrites;
use polynym_directory::{Found, Identity, User, View, Write};
use polynym_identifier::IdentityKey;

/// The times of own writes take one part in 16 of the memory.
const OWN_WRITES_DIVISOR: usize = 16;

/// The answers to look-ups of one server.
///
/// A user is an answer to each key that it lists, because its own document proves its ownership.
/// The age of that answer is the age of the user. The age of the answer that nobody owns a key is
/// the age of the key's entry.
pub struct LookupCache {
    entries: Entries,
    writes: OwnWrites,
    start: Instant,
}

/// An answer from the cache.
#[derive(Debug)]
pub struct Hit {
    /// The owner, if there is one.
    pub found: Option<Found>,
    /// The time since its read was sent.
    pub age: Duration,
}

/// The view and the rules of a look-up. Answers differ by both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The part of users that is read.
    pub view: View,
    /// The version of the rules by which the key was normalised. A key that nobody owned under
    /// other rules may be the new key of a user.
    pub rules: u32,
}

impl LookupCache {
    /// A cache of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        let write_bytes = bytes / OWN_WRITES_DIVISOR;
        Arc::new(Self {
            entries: Entries::new(bytes - write_bytes),
            writes: OwnWrites::new(write_bytes),
            start: Instant::now(),
        })
    }

    /// The present time.
    pub fn now(&self) -> CacheInstant {
        CacheInstant(1 + nanos(self.start.elapsed()))
    }

    /// The answer to a look-up of `key`, if it is at most `max_age` old and was read after this
    /// server's last write.
    pub fn get(&self, key: &IdentityKey, terms: Terms, max_age: Duration) -> Option<Hit> {
        let now = self.now();
        let oldest = CacheInstant(now.0.saturating_sub(nanos(max_age)));
        let owner = self.entries.owner(key)?;
        let (found, sent, written) = match owner.id {
            None if owner.rules == terms.rules => (None, owner.sent, self.writes.of_key(key)),
            None => return None,
            Some(id) => {
                let (user, sent) = self.entries.user(id, terms.view)?;
                (Some(Found::new(user, key)?), sent, self.writes.of_user(id))
            }
        };
        let is_usable = sent >= oldest && sent > written;
        is_usable.then(|| Hit { found, age: Duration::from_nanos(now.0 - sent.0.min(now.0)) })
    }

    /// Stores the answer to a look-up whose read was sent at `sent`, unless this server has written
    /// the user or the key since.
    pub fn put(&self, key: &IdentityKey, terms: Terms, sent: CacheInstant, found: Option<&Found>) {
        let rules = terms.rules;
        let Some(found) = found else {
            if sent > self.writes.of_key(key) {
                self.entries.put_owner(key, Owner { id: None, rules, sent });
            }
            return;
        };
        if let Ok(id) = found.user.id()
            && sent > self.writes.of_user(id)
        {
            self.entries.put_owner(key, Owner { id: Some(id), rules, sent });
            self.entries.put_user(id, terms.view, &found.user, sent);
        }
    }

    /// The bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.entries.bytes()
    }

    /// Registers a mutation of this server that is about to be committed. Answers are stored again
    /// if their reads are sent later than `settling` after its end.
    pub fn pending_write<'w>(
        self: &Arc<Self>,
        writes: impl Iterator<Item = &'w Write>,
        settling: Duration,
    ) -> PendingWrite {
        let (mut users, mut keys) = (Vec::new(), Vec::new());
        for write in writes {
            match write {
                Write::PutUser(record) => users.push(record.id()),
                Write::RemoveUser(id) => users.push(*id),
                Write::Claim(key, _) => keys.push(key.clone()),
                Write::EndOwnership(..)
                | Write::ForgetOwnership(..)
                | Write::ReplaceEvents(..)
                | Write::RemoveEvents(..)
                | Write::AddTenantEvent(..)
                | Write::Notify(..)
                | Write::PutTenant(_)
                | Write::RemoveTenant
                | Write::PutBulkChange(_)
                | Write::PutBulkUsers(..)
                | Write::RemoveBulkChange(_)
                | Write::PutDelivery(_)
                | Write::RemoveDelivery(_) => {}
                #[cfg(feature = "test-entity")]
                Write::Count(_) => {}
            }
        }
        PendingWrite { cache: self.clone(), users, keys, settling }
    }

    /// Registers a mutation that writes this user alone, with all of its identities.
    pub fn pending_user(self: &Arc<Self>, user: &User, settling: Duration) -> PendingWrite {
        let key =
            |identity: &Identity| IdentityKey::new(user.tenant.as_str(), &identity.identifier);
        let keys = user.identities.iter().map(key).collect();
        PendingWrite { cache: self.clone(), users: vec![user.id], keys, settling }
    }
}

/// A mutation of this server that is being committed. Whatever its outcome, dropping it removes the
/// older answers of its users and keys.
pub struct PendingWrite {
    cache: Arc<LookupCache>,
    users: Vec<LocalityId>,
    keys: Vec<IdentityKey>,
    settling: Duration,
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        let LookupCache { entries, writes, .. } = &*self.cache;
        let end = CacheInstant(self.cache.now().0 + nanos(self.settling));
        for id in &self.users {
            writes.record_user(*id, end);
            entries.remove_user(*id);
        }
        for key in &self.keys {
            writes.record_key(key, end);
            entries.remove_owner(key);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
