//! The calls that resolve keys and read users, at the consistency of the caller.

use std::future::ready;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::snapshot_read::SnapshotRead;
use crate::lookup::find::ReadMode;
use crate::lookup::key_lookup::KeyLookup;
use crate::lookup::late_find::Call;
use polynym_directory::{
    ANSWER_BYTES, Consistency, EncodedUser, ItemError, ItemResult, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;

/// The limit of concurrent linearizable look-ups of a batch: each needs a find of its own.
const MAX_LINEARIZABLE: usize = 16;

impl Collections {
    /// The owners of `keys`, in their order.
    pub async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Fault> {
        let call = Call::of(keys.len());
        if consistency != Consistency::Linearizable {
            return self.resolve_together(keys, consistency, view, call).await;
        }
        let is_full = AtomicBool::new(false);
        let one = |n: usize| self.resolve_together(&keys[n..=n], consistency, view, call);
        let rest = stream::iter(0..keys.len()).take_while(|_| ready(!is_full.load(Relaxed)));
        let mut each = std::pin::pin!(rest.map(one).buffered(MAX_LINEARIZABLE));
        let (mut all, mut bytes) =
            (Resolved { found: Vec::with_capacity(keys.len()), reads: 0 }, 0);
        while let Some(outcome) = each.next().await {
            let one = outcome
                .unwrap_or_else(|fault| Resolved { found: vec![Err(fault.into())], reads: 1 });
            bytes += one
                .found
                .iter()
                .flatten()
                .flatten()
                .map(|found| found.user.as_bytes().len())
                .sum::<usize>();
            is_full.fetch_or(bytes > ANSWER_BYTES, Relaxed);
            all.reads += one.reads;
            all.found.extend(one.found);
        }

        Ok(all)
    }

    /// Claim and user are not one snapshot: if they disagree, both are read again, and then in one
    /// transaction, a snapshot of all shards.
    async fn resolve_together(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        call: Call,
    ) -> Result<Resolved, Fault> {
        let mut mode = self.read_mode(consistency, call);
        let (mut lookups, mut reads) =
            self.look_up_with_hints(keys, consistency, view, call).await?;
        for in_snapshot in [false, true] {
            let torn: Vec<usize> =
                (0..lookups.len()).filter(|n| matches!(lookups[*n], KeyLookup::Torn)).collect();
            if torn.is_empty() {
                break;
            }
            let torn_keys: Vec<IdentityKey> = torn.iter().map(|n| keys[*n].clone()).collect();
            let again = if in_snapshot {
                self.look_up_snapshot(&torn_keys, view).await
            } else {
                self.look_up(&torn_keys, &mut mode, view).await
            };
            match again {
                Ok((again, more)) => {
                    reads += more;
                    // Keys after the first that did not fit do not fit either.
                    lookups.truncate(torn.get(again.len()).copied().unwrap_or(usize::MAX));
                    torn.into_iter().zip(again).for_each(|(n, lookup)| lookups[n] = lookup);
                }
                Err(fault) => {
                    let error = ItemError::from(fault);
                    torn.into_iter().for_each(|n| lookups[n] = KeyLookup::Failed(error.clone()));
                }
            }
        }

        let found = lookups.into_iter().map(|lookup| match lookup {
            KeyLookup::Free => Ok(None),
            KeyLookup::Owned(found) => Ok(Some(found)),
            KeyLookup::Torn => {
                Err(Fault::damaged("a claim names a user who does not list it").into())
            }
            KeyLookup::Failed(error) => Err(error),
        });

        Ok(Resolved { found: found.collect(), reads })
    }

    /// The users of `tenant` with these ids, in their order.
    pub async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Fault> {
        let mut mode = self.read_mode(Consistency::Latest, Call::of(ids.len()));
        let (users, _) = self.users(ids.iter().copied().map(Some), &mut mode, view).await?;
        Ok(of_tenant(tenant, users))
    }

    /// These users in one snapshot of all shards, which is not older than the call.
    pub async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Fault> {
        let mut read = SnapshotRead::new(self);
        loop {
            let mut transaction = read.begin().await?;
            let users = self
                .users(
                    ids.iter().copied().map(Some),
                    &mut ReadMode::Snapshot(&mut transaction),
                    view,
                )
                .await;
            if let Some((users, _)) = read.end(transaction, users).await? {
                return Ok(of_tenant(tenant, users));
            }
        }
    }

    /// Looks up `keys` in one snapshot of all shards, which is not older than the call.
    async fn look_up_snapshot(
        &self,
        keys: &[IdentityKey],
        view: View,
    ) -> Result<(Vec<KeyLookup>, u32), Fault> {
        let mut read = SnapshotRead::new(self);
        loop {
            let mut transaction = read.begin().await?;
            let lookups = self.look_up(keys, &mut ReadMode::Snapshot(&mut transaction), view).await;
            if let Some(found) = read.end(transaction, lookups).await? {
                return Ok(found);
            }
        }
    }
}

/// Drops the users of other tenants.
pub fn of_tenant(
    tenant: &Tenant,
    users: Vec<ItemResult<EncodedUser>>,
) -> Vec<ItemResult<EncodedUser>> {
    let is_own = |user: &EncodedUser| user.tenant() == tenant.as_str().as_bytes();
    users.into_iter().map(|user| Ok(user?.filter(is_own))).collect()
}
