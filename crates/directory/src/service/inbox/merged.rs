//! Pages of several inboxes: those of users that were merged. Each has its notices in the order in
//! which they came. Together they are in the order in which they were sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::timestamp::Timestamp;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::inbox::list::{NoticesRequest, Place, READ_AT_ONCE, other_list};
use crate::stores::InboxEntry;

/// A notice in one of the inboxes.
#[derive(Clone, Copy, Debug)]
struct Listed {
    send_time: Timestamp,
    notice: LocalityId,
    user: LocalityId,
    position: u64,
}

impl Listed {
    const fn key(&self) -> (Timestamp, LocalityId) {
        (self.send_time, self.notice)
    }
}

impl Directory {
    /// A page of several inboxes, and where the next begins.
    pub(crate) async fn page_of_many(
        &self,
        context: &RequestContext<'_>,
        users: &[LocalityId],
        request: &NoticesRequest<'_>,
        size: usize,
        after: Option<Place>,
    ) -> Result<(Vec<InboxEntry>, Option<Place>), Error> {
        let mut listed = self.list_all(context, users, request.unread_only).await?;
        match after {
            None => {}
            Some(Place::InMany(time, notice)) => {
                listed.retain(|listed| listed.key() < (time, notice));
            }
            Some(Place::InOne(_)) => return Err(other_list()),
        }
        let page = &listed[..listed.len().min(size).min(READ_AT_ONCE)];
        let mut positions: BTreeMap<LocalityId, BTreeSet<u64>> = BTreeMap::new();
        for listed in page {
            positions.entry(listed.user).or_default().insert(listed.position);
        }
        let mut contents = HashMap::new();
        for (user, positions) in positions {
            let entries = self.entries_at(user, positions).await?;
            contents.extend(entries.into_iter().map(|entry| ((user, entry.position), entry)));
        }

        let mut entry = |listed: &Listed| contents.remove(&(listed.user, listed.position));
        let entries = page.iter().filter_map(&mut entry).collect();
        let last = page.last().filter(|_| page.len() < listed.len());
        Ok((entries, last.map(|last| Place::InMany(last.send_time, last.notice))))
    }

    /// The notices of several inboxes, the latest first, each once.
    async fn list_all(
        &self,
        context: &RequestContext<'_>,
        users: &[LocalityId],
        unread_only: bool,
    ) -> Result<Vec<Listed>, Error> {
        let mut all: BTreeMap<LocalityId, Listed> = BTreeMap::new();
        for user in users {
            for entry in self.listing(context, *user).await? {
                let Some(notice) = entry.notice.filter(|_| !(unread_only && entry.read)) else {
                    continue;
                };
                let (send_time, position) = (notice.send_time, entry.position);
                let listed = Listed { send_time, notice: notice.id, user: *user, position };
                all.entry(notice.id).or_insert(listed);
            }
        }
        let mut listed: Vec<_> = all.into_values().collect();
        listed.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.key()));
        Ok(listed)
    }

    /// The entries of one inbox at these positions, without those that are gone by now.
    async fn entries_at(
        &self,
        user: LocalityId,
        mut positions: BTreeSet<u64>,
    ) -> Result<Vec<InboxEntry>, Error> {
        let mut entries = Vec::new();
        while let (Some(first), Some(last)) = (positions.first().copied(), positions.pop_last()) {
            let span = usize::try_from(last - first + 1).unwrap_or(usize::MAX).min(READ_AT_ONCE);
            let part = self.backend.inboxes.inbox(user, Some(last + 1), span, true).await?;
            for entry in part.entries {
                let is_wanted = entry.position == last || positions.remove(&entry.position);
                if is_wanted && entry.notice.is_some() {
                    entries.push(entry);
                }
            }
        }
        Ok(entries)
    }
}
