//! The calls of an inbox store.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use redb::{ReadableTable, WriteTransaction};

use crate::error::Fault;
use crate::inbox::contents::{Content, SharedContents};
use crate::inbox::entry::EntryRecord;
use crate::inbox::inboxes::{Inboxes, keys_of};
use crate::lookup::snapshot::Snapshot;
use crate::requests::Requests;
use crate::schema::tables::{INBOX, INBOX_NOTICES, USERS};
use crate::schema::user::StoredUser;
use crate::store::Embedded;
use polynym_directory::{
    BegunNotice, Delivery, Error, IdempotencyKey, InboxChange, MergeLinks, Notice, Now, Tenant,
    Timestamp, mutation::merge_links::merged_into_of, stores, stores::InboxEntry,
    stores::OLDEST_ENTRIES,
};
use polynym_store_common::operations::{Operation, measure};

/// The bytes of a part of a delivery, unless one user takes more: mutations wait for it.
const PART_BYTES: usize = 256 << 10;
/// The bytes that a row counts without its content: it changes a page of each of its tables.
const MIN_ROW_BYTES: usize = 4 << 10;
/// The most expired rows that are removed for each new one: removal keeps up.
const SWEPT_PER_ROW: usize = 2;

#[async_trait]
impl stores::Inboxes for Embedded {
    async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        tenant_since: Timestamp,
        notice: Option<LocalityId>,
        now: Now,
    ) -> Result<Option<BegunNotice>, Error> {
        let request = (request.clone(), tenant_since);
        let begin = self.write_step(move |transaction| begin(transaction, &request, notice, now));
        measure(Operation::Inbox, async { begin.await? }).await
    }

    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<Vec<bool>, Error> {
        measure(Operation::Inbox, self.deliver_parts(delivery)).await
    }

    async fn holders(
        &self,
        notice: LocalityId,
        _send_time: Timestamp,
        users: &[LocalityId],
    ) -> Result<Vec<LocalityId>, Error> {
        self.on_snapshot(Operation::Inbox, |snapshot| {
            let notices = snapshot.transaction.open_table(INBOX_NOTICES)?;
            let mut holders = Vec::new();
            for user in users {
                if notices.get((user.as_bytes(), notice.as_bytes()))?.is_some() {
                    holders.push(*user);
                }
            }
            Ok(holders)
        })
    }

    async fn inboxes(
        &self,
        tenant: &Tenant,
        user: LocalityId,
    ) -> Result<Option<Vec<LocalityId>>, Error> {
        let read = async { self.read_step(|snapshot| snapshot.inboxes(tenant, user))? };
        measure(Operation::Inbox, read).await
    }

    async fn inbox(
        &self,
        user: LocalityId,
        before: Option<u128>,
        limit: usize,
        with_content: bool,
    ) -> Result<Vec<InboxEntry>, Error> {
        self.on_snapshot(Operation::Inbox, |snapshot| {
            snapshot.inbox(user, before, limit, with_content)
        })
    }

    async fn oldest(&self, user: LocalityId, count: u64) -> Result<Option<Notice>, Error> {
        self.on_snapshot(Operation::Inbox, |snapshot| snapshot.oldest(user, count))
    }

    async fn change_inbox(&self, user: LocalityId, change: InboxChange) -> Result<(), Error> {
        let parts = async {
            let mut before = Some(u64::MAX);
            while let Some(position) = before {
                let change = change.clone();
                let write = move |transaction: &WriteTransaction| {
                    Inboxes::open(transaction)?.change(user, &change, position)
                };
                before = self.write_step(write).await?;
            }
            Ok(())
        };
        measure(Operation::Inbox, parts).await
    }
}

impl Embedded {
    /// See [`stores::Inboxes::deliver`].
    async fn deliver_parts(&self, delivery: Arc<Delivery>) -> Result<Vec<bool>, Error> {
        let users = delivery.users.len();
        if users == 0 {
            return Ok(Vec::new());
        }
        let notice = &delivery.notice;
        let content = Content::for_users(&notice.content, users);
        let (shared_bytes, copied_bytes) = content.bytes();
        let row_bytes = MIN_ROW_BYTES + copied_bytes;
        self.disk.check((shared_bytes + row_bytes * users) as u64)?;
        let (content, part_users) = (Arc::new(content), (PART_BYTES / row_bytes).max(1));
        let mut delivered = Vec::with_capacity(users);
        while delivered.len() < users {
            let begin = delivered.len();
            let part = begin..users.min(begin + part_users);
            let outcome = self.deliver_part(delivery.clone(), content.clone(), part).await;
            delivered.extend(match outcome {
                // The parts before are written.
                Err(Error::Unavailable(cause)) if begin > 0 => Err(Error::OutcomeUnknown(cause)),
                outcome => outcome,
            }?);
        }
        Ok(delivered)
    }

    /// Delivers a notice to some of its users, once the earlier ones of its sender are delivered.
    async fn deliver_part(
        &self,
        delivery: Arc<Delivery>,
        content: Arc<Content>,
        part: Range<usize>,
    ) -> Result<Vec<bool>, Error> {
        let permit = self.deliveries.wait(&delivery.notice.content.sender).await;
        let permit = permit.map_err(|error| Error::Internal(error.into()))?;
        self.write_step(move |transaction| {
            let _permit = permit;
            deliver(transaction, &delivery, &content, part)
        })
        .await
    }
}

/// See [`stores::Inboxes::begin_notice`]. Removes a few expired requests for the new one.
fn begin(
    transaction: &WriteTransaction,
    (request, tenant_since): &(IdempotencyKey, Timestamp),
    notice: Option<LocalityId>,
    now: Now,
) -> Result<Result<Option<BegunNotice>, Error>, Fault> {
    let mut requests = Requests::open(transaction)?;
    let is_void = |time, since| IdempotencyKey::is_void((time, since), *tenant_since, now);
    match requests.prior(request, is_void)? {
        Some(Ok(prior)) => {
            let subject = IdempotencyKey::stored_subject(prior.subject);
            return Ok(Ok(Some((subject, Some(prior.time)))));
        }
        Some(Err(refused)) => return Ok(Err(refused)),
        None => {}
    }
    let Some(notice) = notice else { return Ok(Ok(None)) };
    let since = IdempotencyKey::stored_since(*tenant_since);
    requests.remember(request, notice, now.time, since)?;
    for _ in 0..SWEPT_PER_ROW {
        if now.clock_uncertain || !requests.sweep(now.time)? {
            break;
        }
    }
    Ok(Ok(Some((notice, None))))
}

/// Delivers a notice to the users of a part that exist. Returns for each whether it exists.
fn deliver(
    transaction: &WriteTransaction,
    Delivery { notice, users, limits, clock_uncertain }: &Delivery,
    content: &Content,
    part: Range<usize>,
) -> Result<Vec<bool>, Fault> {
    let users = &users[part];
    let mut inboxes = Inboxes::open(transaction)?;
    let known = transaction.open_table(USERS)?;
    let mut delivered = Vec::with_capacity(users.len());
    for user in users {
        let exists = known.get(user.as_bytes())?.is_some();
        if exists {
            inboxes.deliver(*user, notice, content, *limits)?;
        }
        delivered.push(exists);
    }
    for _ in 0..users.len() * SWEPT_PER_ROW {
        if *clock_uncertain || !inboxes.sweep(notice.send_time)? {
            break;
        }
    }
    Ok(delivered)
}

impl Snapshot {
    /// See [`stores::Inboxes::inboxes`].
    fn inboxes(
        &self,
        tenant: &Tenant,
        id: LocalityId,
    ) -> Result<Result<Option<Vec<LocalityId>>, Error>, Fault> {
        let Some(record) = self.users.get(id.as_bytes())? else { return Ok(Ok(None)) };
        let stored = StoredUser::read(record.value())?;
        if stored.tenant()? != tenant.as_str() {
            return Ok(Ok(None));
        }
        let links = MergeLinks::from_record(&self.decode(&stored)?);
        let mut listed = HashMap::new();
        for id in &links.listed {
            if let Some(record) = self.users.get(id.as_bytes())? {
                listed.insert(*id, StoredUser::read(record.value())?.basic());
            }
        }
        Ok(links.with_merged(|id| listed.get(&id).map(merged_into_of)).map(Some))
    }

    /// See [`stores::Inboxes::inbox`].
    fn inbox(
        &self,
        user: LocalityId,
        before: Option<u128>,
        limit: usize,
        with_content: bool,
    ) -> Result<Vec<InboxEntry>, Fault> {
        let rows = self.transaction.open_table(INBOX)?;
        let end = before.and_then(|before| before.try_into().ok()).unwrap_or(u64::MAX);
        let page = (user.as_bytes(), 0)..(user.as_bytes(), end);
        let shared = with_content.then(|| SharedContents::open(&self.transaction)).transpose()?;
        let mut entries = Vec::new();
        for row in rows.range(page)?.rev().take(limit) {
            let (key, record) = row?;
            let record = EntryRecord::read(record.value(), with_content)?;
            entries.push(record.entry(key.value().1, shared.as_ref())?);
        }
        Ok(entries)
    }

    /// See [`stores::Inboxes::oldest`].
    fn oldest(&self, user: LocalityId, count: u64) -> Result<Option<Notice>, Fault> {
        let rows = self.transaction.open_table(INBOX)?;
        let skipped = count.saturating_sub(OLDEST_ENTRIES);
        let (mut read, mut oldest) = (skipped, None);
        for row in rows
            .range(keys_of(&user))?
            .rev()
            .skip(skipped as usize)
            .take((count - skipped) as usize)
        {
            let (key, record) = row?;
            let entry = EntryRecord::read(record.value(), false)?.entry(key.value().1, None)?;
            (read, oldest) = (read + 1, entry.notice.or(oldest));
        }
        Ok(oldest.filter(|_| read == count))
    }
}
