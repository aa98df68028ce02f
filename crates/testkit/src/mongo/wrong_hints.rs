//! A layer that replaces owner hints of the store below it before look-ups: by an earlier user,
//! possibly of another tenant, or by a random id. No answer may differ.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Consistency, EncodedUser, Error, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::owner_hints::OwnerHints;

/// The number of remembered users, across all stores of the process.
const SEEN: usize = 64;

static USERS: Mutex<Vec<LocalityId>> = Mutex::new(Vec::new());

/// A store whose hints are right, stale, of other users, or random.
pub struct WrongHints {
    store: Arc<dyn LookUps>,
    hints: Arc<OwnerHints>,
    random: AtomicU64,
}

impl WrongHints {
    /// Misleads `store`, whose hints are `hints`.
    pub fn new(store: Arc<dyn LookUps>, hints: Arc<OwnerHints>) -> Self {
        Self { store, hints, random: AtomicU64::new(1) }
    }

    fn mislead(&self, key: &IdentityKey) {
        let random = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed).rotate_left(17);
        let users = USERS.lock().unwrap();
        let other = users.get(random as usize % SEEN).copied();
        match random >> 60 {
            0..4 => self.hints.learn(key, LocalityId::from(u128::from(random).to_be_bytes())),
            4..10 => other.into_iter().for_each(|other| self.hints.learn(key, other)),
            _ => {}
        }
    }

    fn remember(&self, ids: &[LocalityId]) {
        let mut users = USERS.lock().unwrap();
        for id in ids {
            if users.len() < SEEN {
                users.push(*id);
            } else {
                users[id.as_bytes()[3] as usize % SEEN] = *id;
            }
        }
    }
}

#[async_trait]
impl LookUps for WrongHints {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        keys.iter().for_each(|key| self.mislead(key));
        self.store.resolve(keys, consistency, view, max_staleness).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.remember(ids);
        self.store.get(tenant, ids, view).await
    }
}
