//! Pages of the inboxes of merged users, in the order of sending.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::inbox::list::{InboxCursor, NoticesRequest, READ_BATCH};
use crate::stores::InboxEntry;
use crate::timestamp::Timestamp;

/// Further entries that are read with those of a page, which other entries may separate.
const READ_MARGIN: usize = 10;

/// The position of a notice in one of the inboxes.
#[derive(Clone, Copy, Debug)]
struct ListedNotice {
    /// The time in its id: repeated requests may give the same notice different times of sending.
    id_time: Timestamp,
    notice: LocalityId,
    user: LocalityId,
    position: u128,
}

impl ListedNotice {
    const fn key(&self) -> (Timestamp, LocalityId) {
        (self.id_time, self.notice)
    }
}

impl Directory {
    /// A page of several inboxes, and the cursor of the next page.
    pub(crate) async fn page_of_many(
        &self,
        context: &RequestContext<'_>,
        users: &[LocalityId],
        request: &NoticesRequest<'_>,
        size: usize,
        after: Option<InboxCursor>,
    ) -> Result<(Vec<InboxEntry>, Option<InboxCursor>), Error> {
        let (last, size) = (after.map(|cursor| cursor.notice()).transpose()?, size.min(READ_BATCH));
        let is_wanted = |notice: &ListedNotice, read: bool| {
            last.is_none_or(|last| notice.key() < last) && !(request.unread_only && read)
        };
        let listed = self.list_first(context, users, size + 1, is_wanted).await?;
        let page = &listed[..listed.len().min(size)];
        let mut positions: BTreeMap<LocalityId, BTreeSet<u128>> = BTreeMap::new();
        for listed in page {
            positions.entry(listed.user).or_default().insert(listed.position);
        }
        let mut contents = HashMap::new();
        for (user, positions) in positions {
            let entries = self.entries_at(user, positions).await?;
            contents.extend(entries.into_iter().map(|entry| ((user, entry.position), entry)));
        }

        let entries = page
            .iter()
            .filter_map(|listed| contents.remove(&(listed.user, listed.position)))
            .collect();
        let last = page.last().filter(|_| page.len() < listed.len());
        Ok((entries, last.map(|last| InboxCursor::after_notice(last.id_time, last.notice))))
    }

    /// The first `count` wanted notices of several inboxes, the latest first, each once.
    async fn list_first(
        &self,
        context: &RequestContext<'_>,
        users: &[LocalityId],
        count: usize,
        is_wanted: impl Fn(&ListedNotice, bool) -> bool + Sync,
    ) -> Result<Vec<ListedNotice>, Error> {
        let mut first: BTreeMap<Reverse<(Timestamp, LocalityId)>, ListedNotice> = BTreeMap::new();
        for user in users {
            let list = |InboxEntry { position, read, notice }: InboxEntry| {
                let Some(notice) = notice else { return ControlFlow::Continue(()) };
                let (id_time, id) = (notice.id_time(), notice.id);
                let listed = ListedNotice { id_time, notice: id, user: *user, position };
                if is_wanted(&listed, read) {
                    first.entry(Reverse(listed.key())).or_insert(listed);
                }
                if first.len() > count {
                    first.pop_last();
                }
                ControlFlow::Continue(())
            };
            self.visit_entries(context, *user, list).await?;
        }
        Ok(first.into_values().collect())
    }

    /// The entries of one inbox at these positions that still have a notice.
    async fn entries_at(
        &self,
        user: LocalityId,
        mut positions: BTreeSet<u128>,
    ) -> Result<Vec<InboxEntry>, Error> {
        let mut entries = Vec::new();
        while let Some(last) = positions.last().copied() {
            let count = READ_BATCH.min(READ_MARGIN + positions.len());
            let part = self.backend.inboxes.inbox(user, Some(last + 1), count, true).await?;
            let Some(read) = part.last().map(|entry| entry.position) else { break };
            let wanted = positions.split_off(&read);
            let is_wanted = |entry: &InboxEntry| wanted.contains(&entry.position);
            entries.extend(part.into_iter().filter(|e| is_wanted(e) && e.notice.is_some()));
        }
        Ok(entries)
    }
}
