//! A cache of answers to look-ups, for callers who accept answers of some age (`max_staleness`).
//! `entries` keeps owners by keys and users by ids within a bound of bytes, `own_writes` keeps the
//! times of this server's own writes, and `layer` answers look-ups.

mod entries;
mod layer;
mod own_writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;

pub use layer::{AGE, BYTES, Cached, LOOK_UPS};

use crate::directory::encoded::encoded_user::Found;
use crate::directory::model::user::{Identity, User};
use crate::directory::mutation::read_set::Write;
use crate::directory::stores::View;
use crate::identifier::IdentityKey;
use entries::{Entries, Owner};
use own_writes::OwnWrites;

/// The share of the memory that the times of own writes take: one part in sixteen.
const SHARE_OF_WRITES: usize = 16;

/// The answers to look-ups of one server.
///
/// A user is an answer to each key that it lists, as its own document proves its ownership. The age
/// of that answer is the age of the user. The age of the answer that no user owns a key is the age
/// of the key's own entry.
pub struct LookupCache {
    entries: Entries,
    writes: OwnWrites,
    start: Instant,
}

/// A time of the monotonic clock: nanoseconds since the cache was made, and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

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
        let of_writes = bytes / SHARE_OF_WRITES;
        Arc::new(Self {
            entries: Entries::new(bytes - of_writes),
            writes: OwnWrites::new(of_writes),
            start: Instant::now(),
        })
    }

    /// The present time.
    pub fn now(&self) -> Moment {
        Moment(1 + nanos(self.start.elapsed()))
    }

    /// The answer to a look-up of `key`, if there is one that is at most `max_age` old and was read
    /// after the last write of this server.
    pub fn get(&self, key: &IdentityKey, terms: Terms, max_age: Duration) -> Option<Hit> {
        let now = self.now();
        let oldest = Moment(now.0.saturating_sub(nanos(max_age)));
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

    /// Keeps the answer to a look-up whose read was sent then, unless this server has written what
    /// was read since.
    pub fn put(&self, key: &IdentityKey, terms: Terms, sent: Moment, found: Option<&Found>) {
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

    /// A mutation of this server that is about to be committed. Reads are trusted if they are sent
    /// later than `settling` after its end.
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
                | Write::AddTenantEvent(..)
                | Write::Notify(..)
                | Write::PutTenant(_)
                | Write::RemoveTenant => {}
                #[cfg(feature = "test-entity")]
                Write::Count(_) => {}
            }
        }
        PendingWrite { cache: self.clone(), users, keys, settling }
    }

    /// The same of a mutation that has written this user alone, with all of its identities.
    pub fn pending_user(self: &Arc<Self>, user: &User, settling: Duration) -> PendingWrite {
        let key =
            |identity: &Identity| IdentityKey::new(user.tenant.as_str(), &identity.identifier);
        let keys = user.identities.iter().map(key).collect();
        PendingWrite { cache: self.clone(), users: vec![user.id], keys, settling }
    }
}

/// A mutation of this server whose commit is under way. Once it is dropped, whatever the outcome,
/// the answers of its users and keys that were read before are gone.
pub struct PendingWrite {
    cache: Arc<LookupCache>,
    users: Vec<LocalityId>,
    keys: Vec<IdentityKey>,
    settling: Duration,
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        let LookupCache { entries, writes, .. } = &*self.cache;
        let end = Moment(self.cache.now().0 + nanos(self.settling));
        for id in &self.users {
            writes.note_user(*id, end);
            entries.remove_user(*id);
        }
        for key in &self.keys {
            writes.note_key(key, end);
            entries.remove_owner(key);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
