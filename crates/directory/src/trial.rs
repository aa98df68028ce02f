//! A trial of many mutations: what the earlier ones would have written, so that a later one about
//! the same users and keys is decided as it would be after them. Its memory is bounded: beyond that
//! it forgets the earliest.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::EncodedUser;
use crate::model::claim::Claim;
use crate::model::record::Record;
use polynym_identifier::IdentityKey;

/// The bytes that a trial remembers, in two halves: when the second is full, the first is
/// forgotten.
const MAX_BYTES: usize = 32 << 20;
/// The bytes of an entry of a table, beside what it names and has.
const ENTRY_BYTES: usize = 96;

/// What the earlier mutations of a trial would have written.
#[derive(Debug)]
pub struct Trial {
    halves: Mutex<[Half; 2]>,
    max_bytes: usize,
}

/// A half of what is remembered, the later or the earlier one.
#[derive(Debug, Default)]
struct Half {
    users: HashMap<LocalityId, Option<StoredUser>>,
    claims: HashMap<IdentityKey, Option<Claim>>,
    requests: HashSet<u128>,
    bytes: usize,
}

/// A user in its stored form.
type StoredUser = (Bytes, Vec<u8>);

impl Default for Trial {
    fn default() -> Self {
        Self::bounded(MAX_BYTES)
    }
}

/// Trials are compared by what they are, not by what they remember.
impl PartialEq for Trial {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Trial {
    /// A trial that remembers this number of bytes.
    pub fn bounded(max_bytes: usize) -> Self {
        Self { halves: Mutex::default(), max_bytes }
    }

    /// Remembers a user as it would be.
    pub fn put_user(&self, record: &Record) {
        let (user, private) = record.encode();
        let user = user.into_bytes();
        self.add(ENTRY_BYTES + user.len() + private.len(), |half| {
            half.users.insert(record.id(), Some((user, private)));
        });
    }

    /// Remembers that a user would be removed.
    pub fn remove_user(&self, id: LocalityId) {
        self.add(ENTRY_BYTES, |half| drop(half.users.insert(id, None)));
    }

    /// Remembers the claim under a key as it would be; none if it would be free.
    pub fn put_claim(&self, key: IdentityKey, claim: Option<Claim>) {
        self.add(ENTRY_BYTES + key.as_str().len(), |half| {
            half.claims.insert(key, claim);
        });
    }

    /// Remembers that the request with this hash would have taken effect.
    pub fn put_request(&self, request: u128) {
        self.add(ENTRY_BYTES / 2, |half| {
            half.requests.insert(request);
        });
    }

    /// Whether a request would have taken effect.
    pub fn has_request(&self, request: u128) -> bool {
        self.halves().iter().any(|half| half.requests.contains(&request))
    }

    /// The user as it would be, or its absence; `None` if no mutation would have written it.
    pub fn user(&self, id: LocalityId) -> Option<Option<Record>> {
        let stored = find(&self.halves(), |half| &half.users, &id)?;
        let Some((user, private)) = stored else { return Some(None) };
        Record::decode(&EncodedUser::from_stored(user), &private).ok().map(Some)
    }

    /// The claim as it would be, or its absence; `None` if no mutation would have written it.
    pub fn claim(&self, key: &IdentityKey) -> Option<Option<Claim>> {
        find(&self.halves(), |half| &half.claims, key)
    }

    fn add(&self, bytes: usize, change: impl FnOnce(&mut Half)) {
        let mut halves = self.halves();
        change(&mut halves[0]);
        halves[0].bytes += bytes;
        if halves[0].bytes > self.max_bytes / 2 {
            halves[1] = std::mem::take(&mut halves[0]);
        }
    }

    fn halves(&self) -> MutexGuard<'_, [Half; 2]> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The latest value under a key.
fn find<K: Eq + Hash, V: Clone>(
    halves: &[Half; 2],
    table: impl Fn(&Half) -> &HashMap<K, V>,
    key: &K,
) -> Option<V> {
    halves.iter().find_map(|half| table(half).get(key).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tenant::Tenant;
    use polynym_identifier::{Identifier, RawIdentifier};

    fn key(n: usize) -> IdentityKey {
        let email = format!("user{n}@example.com");
        let identifier = Identifier::parse(RawIdentifier::Email(&email)).unwrap();
        IdentityKey::new(Tenant::DEFAULT.as_str(), &identifier)
    }

    #[test]
    fn the_earliest_are_forgotten_beyond_the_bound() {
        let trial = Trial::bounded(64 << 10);
        let claim = |n: usize| {
            let owner = Some(LocalityId::from((n as u128).to_be_bytes()));
            Claim { owner, guard: false, hold: None, rules_version: 1 }
        };
        for n in 0..10_000 {
            trial.put_claim(key(n), Some(claim(n)));
        }
        assert_eq!(trial.claim(&key(0)), None);
        assert_eq!(trial.claim(&key(9_900)), Some(Some(claim(9_900))));
        trial.put_claim(key(9_900), None);
        assert_eq!(trial.claim(&key(9_900)), Some(None));
        let bytes: usize = trial.halves().iter().map(|half| half.bytes).sum();
        assert!(bytes <= (64 << 10) + 1_000, "{bytes}");
    }
}
