//! Users by their ids, where those that were merged are followed to the one who has their
//! identities. Each step is a read of its own, and the answer is one that sees all of them at one
//! moment.

use locality_uuid::LocalityId;

use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::service::Directory;
use crate::stores::{ItemResult, View};

/// A user, and those that lead to it.
pub struct Followed {
    /// The last one; none where there is no such user.
    pub user: ItemResult<EncodedUser>,
    /// The users on the way there, each merged into the next.
    merged: Vec<LocalityId>,
    /// The id of the last one.
    id: LocalityId,
}

impl Followed {
    const fn new(id: LocalityId, user: ItemResult<EncodedUser>) -> Self {
        Self { user, merged: Vec::new(), id }
    }

    fn next(&self) -> Option<LocalityId> {
        into(self.user.as_ref().ok()?.as_ref()?)
    }

    fn step(&mut self, id: LocalityId, user: ItemResult<EncodedUser>) {
        self.user = user;
        self.merged.push(std::mem::replace(&mut self.id, id));
    }

    /// All steps.
    fn chain(&self) -> Vec<LocalityId> {
        self.merged.iter().copied().chain([self.id]).collect()
    }
}

impl Directory {
    /// The users with these ids, in their order; fewer where the store leaves some out. Takes one
    /// read for all that are not merged; for those that are, one for each step, and one more that
    /// sees all steps at one moment. Where somebody was merged or came apart meanwhile, it begins
    /// again.
    pub(crate) async fn follow(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<Followed>, Error> {
        let mut followed = self.steps(tenant, ids, view).await?;
        loop {
            let torn = self.confirm(tenant, &mut followed, view).await?;
            let again: Vec<_> = torn.iter().map(|n| ids[*n]).collect();
            if again.is_empty() {
                return Ok(followed);
            }
            let anew = self.steps(tenant, &again, view).await?;
            let rest = torn.get(anew.len()).copied();
            torn.into_iter().zip(anew).for_each(|(n, anew)| followed[n] = anew);
            followed.truncate(rest.unwrap_or(usize::MAX));
        }
    }

    async fn steps(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<Followed>, Error> {
        let users = self.backend.lookups.get(tenant, ids, view).await?;
        let mut followed: Vec<_> =
            ids.iter().zip(users).map(|(id, user)| Followed::new(*id, user)).collect();
        // More steps than there can be merges are a circle, which only steps of different moments
        // make.
        for _ in 0..=self.limits.merged {
            let next: Vec<_> = followed
                .iter()
                .enumerate()
                .filter_map(|(n, user)| Some((n, user.next()?)))
                .collect();
            if next.is_empty() {
                break;
            }
            let ids: Vec<_> = next.iter().map(|(_, into)| *into).collect();
            let users = self.backend.lookups.get(tenant, &ids, view).await?;
            // The answer ends at the first user that the store has left out.
            let rest = next.get(users.len()).map(|(n, _)| *n);
            next.into_iter().zip(users).for_each(|((n, id), user)| followed[n].step(id, user));
            followed.truncate(rest.unwrap_or(usize::MAX));
        }

        Ok(followed)
    }

    /// Reads all steps once more, at one moment, and takes over the last users as they are then:
    /// parts of one merge may become visible one after the other. Returns which of them lead
    /// elsewhere by now. Where a step cannot be read any more, nor can its user.
    async fn confirm(
        &self,
        tenant: &Tenant,
        followed: &mut Vec<Followed>,
        view: View,
    ) -> Result<Vec<usize>, Error> {
        let merged = followed.iter().enumerate().filter(|(_, user)| !user.merged.is_empty());
        let chains: Vec<_> = merged.map(|(n, user)| (n, user.chain())).collect();
        let ids: Vec<_> = chains.iter().flat_map(|(_, chain)| chain).copied().collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }

        let mut now = self.backend.reads.get_snapshot(tenant, &ids, view).await?.into_iter();
        let mut torn = Vec::new();
        for (n, chain) in chains {
            let users: Vec<_> = now.by_ref().take(chain.len()).collect();
            if users.len() < chain.len() {
                followed.truncate(n);
                break;
            }
            match users.into_iter().collect::<Result<Vec<_>, _>>() {
                Err(error) => followed[n].user = Err(error),
                Ok(mut users) if is_chain(&chain, &users) => {
                    followed[n].user = Ok(users.pop().flatten())
                }
                Ok(_) => torn.push(n),
            }
        }

        Ok(torn)
    }
}

/// Whether each of these users was merged into the next, and the last is not merged.
fn is_chain(ids: &[LocalityId], users: &[Option<EncodedUser>]) -> bool {
    let next = ids[1..].iter().map(|id| Some(*id)).chain([None]);
    users.iter().map(|user| user.as_ref().and_then(into)).eq(next)
}

/// The user that a user was merged into.
fn into(user: &EncodedUser) -> Option<LocalityId> {
    match user.state() {
        State::Merged { into } => Some(into),
        _ => None,
    }
}
