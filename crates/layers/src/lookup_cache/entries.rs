//! The entries of the cache: owners by keys, and users by ids and views, in one map that is bounded
//! by bytes.

use std::hash::RandomState;

use bytes::Bytes;
use locality_uuid::LocalityId;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, OptionsBuilder, Weighter};

use super::instant::CacheInstant;
use polynym_directory::{EncodedUser, View};
use polynym_identifier::IdentityKey;

/// The bytes of an entry besides its key and its user: its slot in the map and the allocator's
/// overhead.
const OVERHEAD_BYTES: usize = 192;
/// The usual bytes of an entry.
const USUAL_ENTRY_BYTES: usize = 320;
/// The least bytes of one shard of the map: a user must fit in one.
const MIN_SHARD_BYTES: usize = 8 << 20;
/// The most shards of the map.
const MAX_SHARDS: usize = 32;

/// The entries.
pub struct Entries(Cache<Name, Entry, ByBytes, RandomState, DefaultLifecycle<Name, Entry>>);

/// The owner of a key.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The owner. None if nobody owns the key.
    pub id: Option<LocalityId>,
    /// The version of the rules under which the key was looked up.
    pub rules: u32,
    /// The time at which the read was sent.
    pub sent: CacheInstant,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Name {
    Owner(IdentityKey),
    User(LocalityId, View),
}

/// A [`Name`] whose key is borrowed. Both have the same hash.
#[derive(Hash)]
enum NameRef<'n> {
    Owner(&'n IdentityKey),
    User(LocalityId, View),
}

#[derive(Clone)]
enum Entry {
    Owner(Owner),
    User(EncodedUser, CacheInstant),
}

impl Equivalent<Name> for NameRef<'_> {
    fn equivalent(&self, name: &Name) -> bool {
        match (self, name) {
            (Self::Owner(key), Name::Owner(other)) => *key == other,
            (Self::User(id, view), Name::User(other, other_view)) => {
                (id, view) == (other, other_view)
            }
            _ => false,
        }
    }
}

/// Weighs entries by their bytes.
#[derive(Clone)]
struct ByBytes;

impl Weighter<Name, Entry> for ByBytes {
    fn weight(&self, name: &Name, entry: &Entry) -> u64 {
        let key = match name {
            Name::Owner(key) => key.as_str().len(),
            Name::User(..) => 0,
        };
        let user = match entry {
            Entry::Owner(_) => 0,
            Entry::User(user, _) => user.as_bytes().len(),
        };
        (OVERHEAD_BYTES + key + user) as u64
    }
}

impl Entries {
    /// No entries, with room for `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let options = OptionsBuilder::new()
            .shards((bytes / MIN_SHARD_BYTES).clamp(1, MAX_SHARDS))
            .estimated_items_capacity(bytes / USUAL_ENTRY_BYTES)
            .weight_capacity(bytes as u64)
            .build()
            .expect("both capacities are set");
        let (hasher, lifecycle) = (RandomState::default(), DefaultLifecycle::default());
        Self(Cache::with_options(options, ByBytes, hasher, lifecycle))
    }

    /// The last read owner of a key.
    pub fn owner(&self, key: &IdentityKey) -> Option<Owner> {
        match self.0.get(&NameRef::Owner(key))? {
            Entry::Owner(owner) => Some(owner),
            Entry::User(..) => None,
        }
    }

    /// The last read version of a user, and the time at which the read was sent.
    pub fn user(&self, id: LocalityId, view: View) -> Option<(EncodedUser, CacheInstant)> {
        match self.0.get(&NameRef::User(id, view))? {
            Entry::User(user, sent) => Some((user, sent)),
            Entry::Owner(_) => None,
        }
    }

    /// Stores the owner of a key.
    pub fn put_owner(&self, key: &IdentityKey, owner: Owner) {
        self.0.insert(Name::Owner(key.clone()), Entry::Owner(owner));
    }

    /// Stores a copy of a user, whose bytes may be part of a large answer.
    pub fn put_user(&self, id: LocalityId, view: View, user: &EncodedUser, sent: CacheInstant) {
        let copy = EncodedUser::from_stored(Bytes::copy_from_slice(user.as_bytes()));
        self.0.insert(Name::User(id, view), Entry::User(copy, sent));
    }

    /// Removes the owner of a key.
    pub fn remove_owner(&self, key: &IdentityKey) {
        self.0.remove(&NameRef::Owner(key));
    }

    /// Removes a user in all views.
    pub fn remove_user(&self, id: LocalityId) {
        for view in [View::Full, View::Basic] {
            self.0.remove(&NameRef::User(id, view));
        }
    }

    /// The bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }
}
