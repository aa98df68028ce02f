//! Look-ups by ids that follow merges to the user who has the identities. Each step is a read of
//! its own; a final read of all steps in one snapshot confirms the answer.

use locality_uuid::LocalityId;

use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::service::Directory;
use crate::stores::{ItemResult, View};

/// A chain of users, each merged into the next.
pub struct MergeChain {
    /// The last user; none if it does not exist.
    pub user: ItemResult<EncodedUser>,
    /// The users before the last one.
    merged: Vec<LocalityId>,
    /// The id of the last user.
    id: LocalityId,
}

impl MergeChain {
    const fn new(id: LocalityId, user: ItemResult<EncodedUser>) -> Self {
        Self { user, merged: Vec::new(), id }
    }

    fn next(&self) -> Option<LocalityId> {
        merged_into(self.user.as_ref().ok()?.as_ref()?)
    }

    fn push(&mut self, id: LocalityId, user: ItemResult<EncodedUser>) {
        self.user = user;
        self.merged.push(std::mem::replace(&mut self.id, id));
    }

    fn ids(&self) -> Vec<LocalityId> {
        self.merged.iter().copied().chain([self.id]).collect()
    }
}

impl Directory {
    /// The users with these ids, in order; fewer if the store omits some. Takes one read for users
    /// that are not merged; for merged ones, a read for each step and a read of all steps in one
    /// snapshot. Starts over for users that were merged or unmerged in between.
    pub(crate) async fn follow_merges(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<MergeChain>, Error> {
        let mut chains = self.read_chains(tenant, ids, view).await?;
        loop {
            let broken = self.confirm(tenant, &mut chains, view).await?;
            if broken.is_empty() {
                return Ok(chains);
            }
            let broken_ids: Vec<_> = broken.iter().map(|n| ids[*n]).collect();
            let reread = self.read_chains(tenant, &broken_ids, view).await?;
            let omitted = broken.get(reread.len()).copied();
            broken.into_iter().zip(reread).for_each(|(n, chain)| chains[n] = chain);
            chains.truncate(omitted.unwrap_or(usize::MAX));
        }
    }

    async fn read_chains(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<MergeChain>, Error> {
        let users = self.backend.lookups.get(tenant, ids, view).await?;
        let mut chains: Vec<_> =
            ids.iter().zip(users).map(|(id, user)| MergeChain::new(*id, user)).collect();
        // Reads at different times may see a cycle: the limit of merges ends it.
        for _ in 0..=self.limits.merged {
            let next: Vec<_> = chains
                .iter()
                .enumerate()
                .filter_map(|(n, chain)| Some((n, chain.next()?)))
                .collect();
            if next.is_empty() {
                break;
            }
            let ids: Vec<_> = next.iter().map(|(_, into)| *into).collect();
            let users = self.backend.lookups.get(tenant, &ids, view).await?;
            // The answer ends at the first user that the store omits.
            let omitted = next.get(users.len()).map(|(n, _)| *n);
            next.into_iter().zip(users).for_each(|((n, id), user)| chains[n].push(id, user));
            chains.truncate(omitted.unwrap_or(usize::MAX));
        }

        Ok(chains)
    }

    /// Reads the merged chains again in one snapshot, because parts of one merge may become visible
    /// one after the other, and takes the last users from it. Returns the positions of the chains
    /// that have changed. A chain with an unreadable user gets that error.
    async fn confirm(
        &self,
        tenant: &Tenant,
        chains: &mut Vec<MergeChain>,
        view: View,
    ) -> Result<Vec<usize>, Error> {
        let merged = chains.iter().enumerate().filter(|(_, chain)| !chain.merged.is_empty());
        let steps: Vec<_> = merged.map(|(n, chain)| (n, chain.ids())).collect();
        let ids: Vec<_> = steps.iter().flat_map(|(_, ids)| ids).copied().collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }

        let mut snapshot = self.backend.reads.get_snapshot(tenant, &ids, view).await?.into_iter();
        let mut broken = Vec::new();
        for (n, ids) in steps {
            let users: Vec<_> = snapshot.by_ref().take(ids.len()).collect();
            if users.len() < ids.len() {
                chains.truncate(n);
                break;
            }
            match users.into_iter().collect::<Result<Vec<_>, _>>() {
                Err(error) => chains[n].user = Err(error),
                Ok(mut users) if is_chain(&ids, &users) => {
                    chains[n].user = Ok(users.pop().flatten())
                }
                Ok(_) => broken.push(n),
            }
        }

        Ok(broken)
    }
}

/// Whether each of these users was merged into the next, and the last is not merged.
fn is_chain(ids: &[LocalityId], users: &[Option<EncodedUser>]) -> bool {
    let next = ids[1..].iter().map(|id| Some(*id)).chain([None]);
    users.iter().map(|user| user.as_ref().and_then(merged_into)).eq(next)
}

/// The user that a user was merged into.
fn merged_into(user: &EncodedUser) -> Option<LocalityId> {
    match user.state() {
        State::Merged { into } => Some(into),
        _ => None,
    }
}
