//! Look-ups: the claims by their keys, then the users by their ids, each one find that goes to the
//! shards that own what is looked for. Documents are read where they lie in the server's reply.

use std::future::ready;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;

use crate::directory::error::ItemError;
use crate::directory::model::tenant::Tenant;
use crate::directory::store::{ANSWER_BYTES, Consistency, ItemResult, Resolved, View};
use crate::identifier::IdentityKey;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::database::snapshot_read::Moment;
use crate::store::mongo::lookup::find::Finds;
use crate::store::mongo::lookup::pairs::Pair;
use crate::wire::encoded_user::EncodedUser;

/// Linearizable look-ups of one batch that run concurrently: each is alone in its find.
const LINEARIZABLE_AT_ONCE: usize = 16;

impl Collections {
    /// The owners of `keys`, in their order.
    pub async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Fault> {
        if consistency != Consistency::Linearizable {
            return self.resolve_together(keys, consistency, view).await;
        }
        let is_full = AtomicBool::new(false);
        let one = |n: usize| self.resolve_together(&keys[n..=n], consistency, view);
        let rest = stream::iter(0..keys.len()).take_while(|_| ready(!is_full.load(Relaxed)));
        let mut each = std::pin::pin!(rest.map(one).buffered(LINEARIZABLE_AT_ONCE));
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

    /// Claim and user are not one snapshot: where they disagree, both are read again, and then in
    /// one transaction, which sees one moment on all shards.
    async fn resolve_together(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Fault> {
        let mut plain = self.plain(consistency);
        let (mut pairs, mut reads) = self.guessed_pairs(keys, consistency, view).await?;
        for exact in [false, true] {
            let torn: Vec<usize> =
                (0..pairs.len()).filter(|n| matches!(pairs[*n], Pair::Torn)).collect();
            if torn.is_empty() {
                break;
            }
            let keys: Vec<IdentityKey> = torn.iter().map(|n| keys[*n].clone()).collect();
            let again = if exact {
                self.one_moment(&keys, view).await
            } else {
                self.pairs(&keys, &mut plain, view).await
            };
            match again {
                Ok((again, more)) => {
                    reads += more;
                    // Keys after one that did not fit do not fit either.
                    pairs.truncate(torn.get(again.len()).copied().unwrap_or(usize::MAX));
                    torn.into_iter().zip(again).for_each(|(n, pair)| pairs[n] = pair);
                }
                Err(fault) => {
                    let error = ItemError::from(fault);
                    torn.into_iter().for_each(|n| pairs[n] = Pair::Failed(error.clone()));
                }
            }
        }

        let found = pairs.into_iter().map(|pair| match pair {
            Pair::Free => Ok(None),
            Pair::Owned(found) => Ok(Some(found)),
            Pair::Torn => Err(Fault::damaged("a claim of a user who does not list it").into()),
            Pair::Failed(error) => Err(error),
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
        let mut plain = self.plain(Consistency::Latest);
        let (users, _) = self.users(ids.iter().copied().map(Some), &mut plain, view).await?;
        Ok(of_tenant(tenant, users))
    }

    /// The same users at one moment on all shards, which is not before the call.
    pub async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Fault> {
        let mut moment = Moment::new(self);
        loop {
            let mut transaction = moment.begin().await?;
            let users = self
                .users(ids.iter().copied().map(Some), &mut Finds::Snapshot(&mut transaction), view)
                .await;
            if let Some((users, _)) = moment.end(transaction, users).await? {
                return Ok(of_tenant(tenant, users));
            }
        }
    }

    /// The claims and users of `keys` at one moment on all shards, which is not before the call.
    async fn one_moment(
        &self,
        keys: &[IdentityKey],
        view: View,
    ) -> Result<(Vec<Pair>, u32), Fault> {
        let mut moment = Moment::new(self);
        loop {
            let mut transaction = moment.begin().await?;
            let pairs = self.pairs(keys, &mut Finds::Snapshot(&mut transaction), view).await;
            if let Some(found) = moment.end(transaction, pairs).await? {
                return Ok(found);
            }
        }
    }
}

/// Those of the users that are of a tenant.
fn of_tenant(tenant: &Tenant, users: Vec<ItemResult<EncodedUser>>) -> Vec<ItemResult<EncodedUser>> {
    let is_own = |user: &EncodedUser| user.tenant() == tenant.as_str().as_bytes();
    users.into_iter().map(|user| Ok(user?.filter(is_own))).collect()
}
