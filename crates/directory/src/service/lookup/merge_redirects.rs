//! Look-ups by ids that follow merges to the user who has the identities. Each step is a read of
//! its own; a final read of all steps in one snapshot confirms the answer.

use locality_uuid::LocalityId;

use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, ItemError};
use crate::model::tenant::Tenant;
use crate::mutation::merge_links::{MAX_STEPS, merged_into};
use crate::service::Directory;
use crate::stores::{ItemResult, View};

/// Attempts of a look-up: it is repeated if users are merged or unmerged between its reads.
const MAX_ATTEMPTS: usize = 20;

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

    /// The next user. None at the end, and where the merges seem to lead back: reads at different
    /// times may see a circle.
    fn next(&self) -> Option<LocalityId> {
        let next = merged_into(self.user.as_ref().ok()?.as_ref()?.state())?;
        (next != self.id && !self.merged.contains(&next)).then_some(next)
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
        for _ in 0..MAX_ATTEMPTS {
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
        Err(Error::Unavailable("merges change faster than they can be read".into()))
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
        for _ in 0..MAX_STEPS {
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
                Ok(mut users) => match Chain::from_users(&ids, &users) {
                    Chain::Whole => chains[n].user = Ok(users.pop().flatten()),
                    Chain::Circle => {
                        chains[n].user = Err(ItemError::MergeDamaged { user: ids[0] });
                    }
                    Chain::Changed => broken.push(n),
                },
            }
        }

        Ok(broken)
    }
}

/// The users of a chain as one snapshot shows them.
enum Chain {
    /// Each was merged into the next, and the last is not merged.
    Whole,
    /// Each was merged into the next, and the last into one of them, or there are too many.
    Circle,
    /// The merges have changed.
    Changed,
}

impl Chain {
    fn from_users(ids: &[LocalityId], users: &[Option<EncodedUser>]) -> Self {
        let mut next = users.iter().map(|user| merged_into(user.as_ref()?.state()));
        let is_linked = ids[1..].iter().all(|id| next.next().flatten() == Some(*id));
        match next.next().flatten() {
            _ if !is_linked => Self::Changed,
            None => Self::Whole,
            Some(id) if ids.contains(&id) || ids.len() > MAX_STEPS => Self::Circle,
            Some(_) => Self::Changed,
        }
    }
}
