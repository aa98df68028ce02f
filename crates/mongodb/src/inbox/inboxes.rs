//! Inboxes: rows of [`NOTICES`], which deliveries insert together and without a transaction.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, doc, rawdoc};
use tokio::time::{Instant, timeout_at};

use crate::client::backoff::Backoff;
use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::command::write::WriteCommand;
use crate::inbox::row::{
    new_row, position, read_entry, read_id, row_id, rows_of, update_of, without_content,
};
use crate::schema::bson::{by_id, date, id_of, id_value, raw};
use crate::schema::fields::{ID, NOTICES, PRIVATE, REQUESTS, REVISION, TIME, WIRE};
use crate::schema::request::{StoredRequest, request_document, request_id};
use crate::schema::user::StoredUser;
use crate::schema::versions::Versions;
use polynym_directory::clock::Now;
use polynym_directory::error::Error;
use polynym_directory::model::notice::Notice;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::mutation::merge_links::{MergeLinks, merged_into_of};
use polynym_directory::mutation::read_set::{Write, WriteSet};
use polynym_directory::mutation::{IdempotencyKey, Mutation};
use polynym_directory::stores::{Delivery, InboxChange, InboxEntry, InboxLimits, OLDEST_ENTRIES};
use polynym_directory::timestamp::Timestamp;

/// The limit of inboxes in a command.
const INBOXES_PER_COMMAND: usize = 100;
/// One delivery in this number trims an inbox: until then it has some rows too many.
const DELIVERIES_PER_TRIM: u32 = 64;

/// The inboxes from which notices are removed once a mutation is committed.
#[derive(Default)]
pub struct InboxWork {
    /// Purged users, who keep no notice.
    purged: Vec<LocalityId>,
    /// Users with a new notice, whose inbox may exceed its limits.
    notified: Vec<(LocalityId, InboxLimits)>,
}

impl InboxWork {
    pub fn of(write_set: &WriteSet, mutation: &Mutation) -> Self {
        let limits = InboxLimits::of(&mutation.policies);
        let mut work = Self::default();
        for write in &write_set.writes {
            match write {
                Write::RemoveUser(user) => work.purged.push(*user),
                Write::Notify(user, _) => work.notified.push((*user, limits)),
                _ => {}
            }
        }
        work
    }
}

impl Collections {
    /// See [`Inboxes::begin_notice`](polynym_directory::stores::Inboxes::begin_notice).
    pub async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        tenant_since: Timestamp,
        notice: LocalityId,
        now: Now,
    ) -> Result<Result<(LocalityId, Option<Timestamp>), Error>, Fault> {
        let since = IdempotencyKey::stored_since(tenant_since);
        let document = raw(&request_document(request, notice, now.time, since))?;
        match self.execute(WriteCommand::insert(REQUESTS, [document.clone()])).await {
            Ok(_) => return Ok(Ok((notice, None))),
            Err(fault) if fault.is_duplicate() => {}
            Err(fault) => return Err(fault),
        }
        let by_id = doc! { ID: request_id(request) };
        let found = self.find_document(&self.requests, by_id, doc! {}).await?;
        let stored = StoredRequest::read(&found.ok_or(Fault::TimedOut)?)?;
        let time_and_since = (stored.prior.time, stored.prior.tenant_since);
        if IdempotencyKey::is_void(time_and_since, tenant_since, now) {
            // MongoDB removes expired requests with a delay. The first to replace one begins.
            let void = doc! { ID: request_id(request), TIME: date(stored.prior.time) };
            let replaced = self.execute(WriteCommand::replace(REQUESTS, &void, document)?).await?;
            return if replaced == 1 { Ok(Ok((notice, None))) } else { Err(Fault::TimedOut) };
        }
        if stored.request_hash != request.request_hash {
            return Ok(Err(Error::RequestIdReused));
        }
        Ok(Ok((IdempotencyKey::stored_subject(stored.prior.subject), Some(stored.prior.time))))
    }

    /// Delivers a notice to users. Returns for each whether it exists. Failed writes are repeated:
    /// a row has the id of its notice.
    pub async fn deliver(&self, delivery: &Delivery) -> Result<Vec<bool>, Fault> {
        let deadline = Instant::now() + self.timeout;
        let mut delivered = Vec::with_capacity(delivery.users.len());
        for users in delivery.users.chunks(INBOXES_PER_COMMAND) {
            let attempt = || self.deliver_to(users, &delivery.notice, delivery.limits);
            let backoff = Backoff::for_transaction(deadline);
            delivered.extend(backoff.retry(attempt, Fault::is_retryable).await?);
        }
        Ok(delivered)
    }

    async fn deliver_to(
        &self,
        users: &[LocalityId],
        notice: &Notice,
        limits: InboxLimits,
    ) -> Result<Vec<bool>, Fault> {
        let rows = users.iter().map(|user| new_row(*user, notice, limits));
        self.insert_unordered(NOTICES, rows.collect::<Result<_, _>>()?).await?;
        // A purge that has not seen these rows is committed before this read, or removes them after
        // its commit.
        let present = self.present(users).await?;
        let exists: Vec<_> = users.iter().map(|user| present.contains(user)).collect();
        let position = position(notice.id, notice.send_time);
        let gone = users.iter().zip(&exists).filter(|(_, exists)| !**exists);
        let gone: Vec<_> = gone.map(|(user, _)| row_id(*user, position)).collect();
        if !gone.is_empty() {
            self.execute(WriteCommand::delete(NOTICES, &by_id(gone))?).await?;
        }
        for user in users {
            self.trim_sometimes(*user, limits).await;
        }
        Ok(exists)
    }

    /// The users among `users` that exist.
    pub async fn present(&self, users: &[LocalityId]) -> Result<HashSet<LocalityId>, Fault> {
        let filter = by_id(users.iter().copied().map(id_value).collect());
        let mut options = self.time_limit();
        options.projection = Some(doc! { ID: 1 });
        let mut finds = self.in_order().await?;
        let found = finds.find_documents(&self.users, filter, options).await?;
        found.iter().map(|document| id_of(document)).collect()
    }

    /// Removes what an inbox has beyond its limit, once in many calls. The next mends a failure.
    async fn trim_sometimes(&self, user: LocalityId, limits: InboxLimits) {
        if getrandom::u32().is_ok_and(|random| random % DELIVERIES_PER_TRIM == 0)
            && let Err(fault) = self.trim(user, limits).await
        {
            tracing::warn!(%fault, "an inbox is not trimmed");
        }
    }

    async fn trim(&self, user: LocalityId, limits: InboxLimits) -> Result<(), Fault> {
        let mut options = self.find_options(doc! { ID: -1 }, 1);
        (options.skip, options.projection) = (Some(limits.count), Some(doc! { ID: 1 }));
        let rows = rows_of(user, None);
        let found = self.find_documents(&self.collection(NOTICES), rows, options).await?;
        let Some(first) = found.first() else { return Ok(()) };
        let (_, latest) = read_id(first)?;
        let older = rows_of(user, Some(latest + 1));
        self.execute(WriteCommand::delete(NOTICES, &older)?).await.map(drop)
    }

    /// Removes the notices that deliveries added to the inboxes of purged users during the purge,
    /// and trims some of the inboxes that got notices of rules. `store verify` finds what a long
    /// failure leaves.
    pub async fn clean_up_inboxes(&self, work: InboxWork) {
        if !self.version_guard.versions().is_ok_and(Versions::writes_rows) {
            return;
        }
        let deadline = Instant::now() + self.timeout;
        if timeout_at(deadline, self.clean_up(work, deadline)).await.is_err() {
            tracing::warn!(
                "MongoDB is slow: an inbox is not trimmed, or that of a purged user has notices"
            );
        }
    }

    async fn clean_up(&self, work: InboxWork, deadline: Instant) {
        for user in work.purged {
            let delete = || self.delete_inbox(user);
            let backoff = Backoff::for_transaction(deadline);
            if let Err(fault) = backoff.retry(delete, Fault::is_retryable).await {
                tracing::warn!(%fault, "the inbox of a purged user may have notices");
            }
        }
        for (user, limits) in work.notified {
            self.trim_sometimes(user, limits).await;
        }
    }

    /// Removes the inboxes of those among `users` that do not exist.
    pub async fn delete_inboxes_without_owner(&self, users: &[LocalityId]) -> Result<(), Fault> {
        let present = self.present(users).await?;
        let gone: HashSet<_> = users.iter().filter(|user| !present.contains(user)).collect();
        for user in gone {
            self.delete_inbox(*user).await?;
        }
        Ok(())
    }

    /// Removes the inbox of a user.
    async fn delete_inbox(&self, user: LocalityId) -> Result<(), Fault> {
        self.execute(WriteCommand::delete(NOTICES, &rows_of(user, None))?).await.map(drop)
    }

    /// See [`Inboxes::holders`](polynym_directory::stores::Inboxes::holders).
    pub async fn holders(
        &self,
        position: u128,
        users: Vec<LocalityId>,
    ) -> Result<Vec<LocalityId>, Fault> {
        let mut holders = Vec::new();
        for users in users.chunks(INBOXES_PER_COMMAND) {
            let ids = users.iter().map(|user| row_id(*user, position)).collect();
            let rows = self.existing_rows(ids).await?;
            holders.extend(rows.into_iter().map(|(holder, _)| holder));
        }
        Ok(holders)
    }

    /// The owners and positions of those rows among `ids` that exist.
    pub async fn existing_rows(&self, ids: Vec<Bson>) -> Result<Vec<(LocalityId, u128)>, Fault> {
        let mut options = self.time_limit();
        options.projection = Some(doc! { ID: 1 });
        let notices = self.collection(NOTICES);
        let found = self.find_documents(&notices, by_id(ids), options).await?;
        found.iter().map(|row| read_id(row)).collect()
    }

    /// See [`Inboxes::inboxes`](polynym_directory::stores::Inboxes::inboxes).
    pub async fn inboxes(
        &self,
        tenant: &Tenant,
        user: LocalityId,
    ) -> Result<Result<Option<Vec<LocalityId>>, Error>, Fault> {
        let projection = doc! { REVISION: 1, WIRE: 1, PRIVATE: 1 };
        let user_by_id = doc! { ID: id_value(user) };
        let mut finds = self.in_order().await?;
        let found = finds.find_document(&self.users, user_by_id, projection, self.time_limit());
        let Some(document) = found.await? else { return Ok(Ok(None)) };
        let record = StoredUser::read(&document)?.decode_without_attributes()?;
        if record.user.tenant != *tenant {
            return Ok(Ok(None));
        }
        let links = MergeLinks::of(&record);
        let mut listed = HashMap::new();
        for ids in links.listed.chunks(INBOXES_PER_COMMAND) {
            let filter = by_id(ids.iter().copied().map(id_value).collect());
            let mut options = self.time_limit();
            options.projection = Some(doc! { REVISION: 1, WIRE: 1 });
            for document in finds.find_documents(&self.users, filter, options).await? {
                let stored = StoredUser::read(&document)?;
                listed.insert(stored.id, stored.wire);
            }
        }
        Ok(links.with_merged(|id| listed.get(&id).map(merged_into_of)).map(Some))
    }

    /// See [`Inboxes::inbox`](polynym_directory::stores::Inboxes::inbox).
    pub async fn inbox(
        &self,
        user: LocalityId,
        before: Option<u128>,
        limit: usize,
        with_content: bool,
    ) -> Result<Vec<InboxEntry>, Fault> {
        // To MongoDB, zero is no limit.
        let mut options = self.find_options(doc! { ID: -1 }, limit.max(1));
        options.projection = (!with_content).then(without_content);
        let rows = rows_of(user, before);
        let found = self.find_documents(&self.collection(NOTICES), rows, options).await?;
        found.iter().map(|row| read_entry(row, with_content)).collect()
    }

    /// See [`Inboxes::oldest`](polynym_directory::stores::Inboxes::oldest).
    pub async fn oldest(&self, user: LocalityId, count: u64) -> Result<Option<Notice>, Fault> {
        let skipped = count.saturating_sub(OLDEST_ENTRIES);
        let read = (count - skipped) as usize;
        let mut options = self.find_options(doc! { ID: -1 }, read);
        (options.skip, options.projection) = (Some(skipped), Some(without_content()));
        let rows = rows_of(user, None);
        let found = self.find_documents(&self.collection(NOTICES), rows, options).await?;
        let mut oldest = None;
        for row in found.iter().filter(|_| found.len() == read) {
            oldest = read_entry(row, false)?.notice.or(oldest);
        }
        Ok(oldest)
    }

    /// See [`Inboxes::change_inbox`](polynym_directory::stores::Inboxes::change_inbox).
    pub async fn change_inbox(&self, user: LocalityId, change: &InboxChange) -> Result<(), Fault> {
        let update = || self.update_unordered(NOTICES, vec![update_of(user, change)]);
        let backoff = Backoff::for_transaction(Instant::now() + self.timeout);
        backoff.retry(update, Fault::is_retryable).await.map(drop)
    }
}

impl Transaction<'_> {
    /// Adds a notice to the inbox of a user, unless the inbox has it.
    pub async fn notify(
        &mut self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
    ) -> Result<(), Fault> {
        let id = doc! { ID: row_id(user, position(notice.id, notice.send_time)) };
        let change = rawdoc! { "$setOnInsert": new_row(user, notice, limits)? };
        self.execute(WriteCommand::upsert(NOTICES, &id, change)?).await.map(drop)
    }

    /// Removes the inbox of a user.
    pub async fn delete_inbox(&mut self, user: LocalityId) -> Result<(), Fault> {
        self.execute(WriteCommand::delete(NOTICES, &rows_of(user, None))?).await.map(drop)
    }
}
