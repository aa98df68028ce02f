//! Users by their ids, where those that were merged are followed to the one who has their identities. Each step is a read
//! of its own: an answer is told only where all of its steps were so at one moment.

use super::{Directory, Error, ItemResult, State, Tenant, WireUser};
use crate::locality::LocalityId;

/// A user, and those that lead to it.
pub struct Followed {
    /// The last one; none where there is no such user.
    pub user: ItemResult<WireUser>,
    /// Who is merged, with the id under which it was read.
    merged: Vec<(LocalityId, WireUser)>,
    /// The id of the last one.
    id: LocalityId,
}

impl Followed {
    const fn new(id: LocalityId, user: ItemResult<WireUser>) -> Self {
        Self { user, merged: Vec::new(), id }
    }

    fn next(&self) -> Option<LocalityId> {
        match self.user.as_ref().ok()?.as_ref()?.state() {
            State::Merged { into } => Some(into),
            _ => None,
        }
    }

    fn step(&mut self, id: LocalityId, user: ItemResult<WireUser>) {
        let merged = std::mem::replace(&mut self.user, user).ok().flatten();
        self.merged.extend(merged.map(|merged| (self.id, merged)));
        self.id = id;
    }
}

impl Directory {
    /// The users with these ids, in their order; fewer where the store leaves some out. Takes one read for all that are
    /// not merged; for those that are, one for each step, and one more that finds all steps as they were: then they were so
    /// when the last user was read. Where somebody was merged or came apart meanwhile, it begins again.
    pub(super) async fn follow(&self, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<Followed>, Error> {
        let mut followed = self.steps(tenant, ids).await?;
        loop {
            let torn = self.torn(tenant, &mut followed).await?;
            let again: Vec<_> = torn.iter().map(|n| ids[*n]).collect();
            if again.is_empty() {
                return Ok(followed);
            }
            let anew = self.steps(tenant, &again).await?;
            let rest = torn.get(anew.len()).copied();
            torn.into_iter().zip(anew).for_each(|(n, anew)| followed[n] = anew);
            followed.truncate(rest.unwrap_or(usize::MAX));
        }
    }

    async fn steps(&self, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<Followed>, Error> {
        let users = self.store.get(tenant, ids).await?;
        let mut followed: Vec<_> = ids.iter().zip(users).map(|(id, user)| Followed::new(*id, user)).collect();
        // More steps than there can be merges are a circle, which only steps of different moments make.
        for _ in 0..=self.limits.merged {
            let next: Vec<_> = followed.iter().enumerate().filter_map(|(n, user)| Some((n, user.next()?))).collect();
            if next.is_empty() {
                break;
            }
            let ids: Vec<_> = next.iter().map(|(_, into)| *into).collect();
            let users = self.store.get(tenant, &ids).await?;
            // What the store has left out ends the answer.
            let rest = next.get(users.len()).map(|(n, _)| *n);
            next.into_iter().zip(users).for_each(|((n, id), user)| followed[n].step(id, user));
            followed.truncate(rest.unwrap_or(usize::MAX));
        }
        Ok(followed)
    }

    /// Which of them have a step that is another one now. Where a step cannot be read any more, nor can its user.
    async fn torn(&self, tenant: &Tenant, followed: &mut [Followed]) -> Result<Vec<usize>, Error> {
        let steps = || followed.iter().enumerate().flat_map(|(n, user)| user.merged.iter().map(move |step| (n, step)));
        let ids: Vec<_> = steps().map(|(_, (id, _))| *id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.store.get(tenant, &ids).await?;
        let (mut torn, mut unread) = (Vec::new(), Vec::new());
        for ((n, (_, then)), now) in steps().zip(now) {
            match now {
                Ok(now) if now.as_ref() == Some(then) => {}
                Ok(_) => torn.push(n),
                Err(error) => unread.push((n, error)),
            }
        }
        torn.retain(|n| unread.iter().all(|(unread, _)| unread != n));
        unread.into_iter().for_each(|(n, error)| followed[n].user = Err(error));
        torn.dedup();
        Ok(torn)
    }
}
