//! Inboxes: rows of [`NOTICES`], which deliveries insert together and without a transaction.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, doc, rawdoc};
use mongodb::options::FindOptions;
use tokio::time::{Instant, timeout_at};

use crate::client::backoff::Backoff;
use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::inbox::row::{
    named_rows, new_row, position, read_entry, read_id, row_id, rows_before, rows_of, search_of,
    update_of, without_content,
};
use crate::schema::bson::{bson_id, by_id, date, id_of, id_value, raw};
use crate::schema::fields::{ID, NOTICES, PRIVATE, REQUESTS, REVISION, TIME, WIRE};
use crate::schema::request::{StoredRequest, request_document, request_id};
use crate::schema::user::StoredUser;
use polynym_directory::{
    BegunNotice, Delivery, Error, IdempotencyKey, InboxChange, InboxLimits, MergeLinks, Mutation,
    Notice, Now, Tenant, Timestamp, Write, WriteSet, mutation::merge_links::merged_into_of,
    stores::InboxEntry, stores::OLDEST_ENTRIES,
};

/// The limit of inboxes in a command.
const INBOXES_PER_COMMAND: usize = 100;
/// The rows that are changed or deleted at once.
const ROWS_PER_STEP: usize = 1_000;
/// The comment of the finds of a clean-up, for the profiler.
const CLEAN_UP: &str = "clean-up";
/// One delivery in this number trims an inbox: until then it has some rows too many.
const DELIVERIES_PER_TRIM: u32 = 64;

/// The inboxes to clean up after a write.
#[derive(Default)]
pub struct InboxWork {
    /// Purged users, who keep no notice: deliveries may have added some during the purge.
    purged: Vec<LocalityId>,
    /// Users with a new notice, whose inbox is trimmed.
    trimmed: Vec<(LocalityId, InboxLimits)>,
}

impl InboxWork {
    /// The inboxes to clean up after a mutation.
    pub fn of(write_set: &WriteSet, mutation: &Mutation) -> Self {
        let limits = InboxLimits::from_policies(&mutation.policies);
        let mut work = Self::default();
        for write in &write_set.writes {
            match write {
                Write::RemoveUser(user) => work.purged.push(*user),
                Write::Notify(user, _) => work.trim_sometimes(*user, limits),
                _ => {}
            }
        }
        work
    }

    /// The inboxes to clean up after a delivery.
    fn of_delivery(delivery: &Delivery) -> Self {
        let mut work = Self::default();
        delivery.users.iter().for_each(|user| work.trim_sometimes(*user, delivery.limits));
        work
    }

    /// Adds an inbox that got a notice, once in many calls.
    fn trim_sometimes(&mut self, user: LocalityId, limits: InboxLimits) {
        if getrandom::u32().is_ok_and(|random| random % DELIVERIES_PER_TRIM == 0) {
            self.trimmed.push((user, limits));
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.purged.is_empty() && self.trimmed.is_empty()
    }
}

impl Collections {
    /// See [`Inboxes::begin_notice`](polynym_directory::stores::Inboxes::begin_notice).
    pub async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        tenant_since: Timestamp,
        notice: Option<LocalityId>,
        now: Now,
    ) -> Result<Result<Option<BegunNotice>, Error>, Fault> {
        let since = IdempotencyKey::stored_since(tenant_since);
        let document = notice
            .map(|notice| raw(&request_document(request, notice, now.time, since)))
            .transpose()?;
        if let Some(document) = &document {
            match self.execute(WriteCommand::insert(REQUESTS, [document.clone()])).await {
                Ok(_) => return Ok(Ok(notice.map(|notice| (notice, None)))),
                Err(fault) if fault.is_duplicate() => {}
                Err(fault) => return Err(fault),
            }
        }
        let by_id = doc! { ID: request_id(request) };
        let found = self.find_document(&self.requests, by_id, doc! {}).await?;
        let Some(found) = found else {
            return if notice.is_none() { Ok(Ok(None)) } else { Err(Fault::TimedOut) };
        };
        let stored = StoredRequest::read(&found)?;
        let time_and_since = (stored.prior.time, stored.prior.tenant_since);
        if IdempotencyKey::is_void(time_and_since, tenant_since, now) {
            let Some(document) = document else { return Ok(Ok(None)) };
            // MongoDB removes expired requests with a delay. The first to replace one begins.
            let void = doc! { ID: request_id(request), TIME: date(stored.prior.time) };
            let replaced = self.execute(WriteCommand::replace(REQUESTS, &void, document)?).await?;
            let begun = notice.map(|notice| (notice, None));
            return if replaced == 1 { Ok(Ok(begun)) } else { Err(Fault::TimedOut) };
        }
        if stored.request_hash != request.request_hash {
            return Ok(Err(Error::RequestIdReused));
        }
        let subject = IdempotencyKey::stored_subject(stored.prior.subject);
        Ok(Ok(Some((subject, Some(stored.prior.time)))))
    }

    /// Delivers a notice to users. Returns for each whether it exists, and the inboxes to clean up.
    /// Failed writes are repeated: a row has the id of its notice.
    pub async fn deliver(&self, delivery: &Delivery) -> Result<(Vec<bool>, InboxWork), Fault> {
        let deadline = Instant::now() + self.timeout;
        let mut delivered = Vec::with_capacity(delivery.users.len());
        for users in delivery.users.chunks(INBOXES_PER_COMMAND) {
            let attempt = || self.deliver_to(users, &delivery.notice, delivery.limits);
            let backoff = Backoff::for_transaction(deadline);
            delivered.extend(backoff.retry(attempt, Fault::is_retryable).await?);
        }
        Ok((delivered, InboxWork::of_delivery(delivery)))
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
            self.execute(WriteCommand::delete_each(NOTICES, gone)?).await?;
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

    /// Removes what an inbox has beyond its limit.
    async fn trim(&self, user: LocalityId, limits: InboxLimits) -> Result<(), Fault> {
        self.delete_rows(user, limits.count).await
    }

    /// Deletes the rows of a user without the latest ones. They are deleted by ids that were just
    /// read: the deletion of a range may miss rows that migrate.
    async fn delete_rows(&self, user: LocalityId, kept: u64) -> Result<(), Fault> {
        loop {
            let mut options = self.find_options(doc! { ID: -1 }, ROWS_PER_STEP);
            options.skip = Some(kept);
            options.comment = Some(CLEAN_UP.into());
            let ids = self.row_ids(rows_of(user, None), options).await?;
            let is_last = ids.len() < ROWS_PER_STEP;
            if !ids.is_empty() {
                self.execute(WriteCommand::delete_each(NOTICES, ids)?).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The ids of rows.
    async fn row_ids(
        &self,
        filter: Document,
        mut options: FindOptions,
    ) -> Result<Vec<Bson>, Fault> {
        options.projection = Some(doc! { ID: 1 });
        let found = self.find_documents(&self.collection(NOTICES), filter, options).await?;
        found.iter().map(|row| bson_id(row)).collect()
    }

    /// Removes the notices that deliveries added to the inboxes of purged users during the purge,
    /// and trims others. `store verify` finds what a long failure leaves.
    pub async fn clean_up_inboxes(&self, work: InboxWork) {
        let deadline = Instant::now() + self.timeout;
        if timeout_at(deadline, self.clean_up(work, deadline)).await.is_err() {
            tracing::warn!(
                "MongoDB is slow: an inbox is not trimmed, or that of a purged user has notices"
            );
        }
    }

    async fn clean_up(&self, work: InboxWork, deadline: Instant) {
        for user in work.purged {
            let delete = || self.delete_rows(user, 0);
            let backoff = Backoff::for_transaction(deadline);
            if let Err(fault) = backoff.retry(delete, Fault::is_retryable).await {
                tracing::warn!(%fault, "the inbox of a purged user may have notices");
            }
        }
        for (user, limits) in work.trimmed {
            // The next one repairs a failure.
            if let Err(fault) = self.trim(user, limits).await {
                tracing::warn!(%fault, "an inbox is not trimmed");
            }
        }
    }

    /// Removes the inboxes of those among `users` that do not exist.
    pub async fn delete_inboxes_without_owner(&self, users: &[LocalityId]) -> Result<(), Fault> {
        let present = self.present(users).await?;
        let gone: HashSet<_> = users.iter().filter(|user| !present.contains(user)).collect();
        for user in gone {
            self.delete_rows(*user, 0).await?;
        }
        Ok(())
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
        let links = MergeLinks::from_record(&record);
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
    pub async fn change_inbox(
        &self,
        user: LocalityId,
        change: &InboxChange,
    ) -> Result<((), InboxWork), Fault> {
        let change_rows = || self.change_rows(user, change);
        let backoff = Backoff::for_transaction(Instant::now() + self.timeout);
        backoff.retry(change_rows, Fault::is_retryable).await?;
        Ok(((), InboxWork::default()))
    }

    /// Changes rows by their ids: the update of a range may miss rows that migrate.
    async fn change_rows(&self, user: LocalityId, change: &InboxChange) -> Result<(), Fault> {
        if let Some(rows) = named_rows(user, change) {
            return self.update_rows(rows, change).await;
        }
        let (mut rows, conditions) = (rows_of(user, None), search_of(change));
        loop {
            rows.extend(conditions.clone());
            let options = self.find_options(doc! { ID: -1 }, ROWS_PER_STEP);
            let ids = self.row_ids(rows, options).await?;
            let next = ids.last().filter(|_| ids.len() == ROWS_PER_STEP).cloned();
            self.update_rows(ids, change).await?;
            let Some(last) = next else { return Ok(()) };
            rows = rows_before(user, last);
        }
    }

    async fn update_rows(&self, ids: Vec<Bson>, change: &InboxChange) -> Result<(), Fault> {
        let (conditions, update) = update_of(change);
        let statement = |id| {
            let mut row = doc! { ID: id };
            row.extend(conditions.clone());
            doc! { "q": row, "u": update.clone() }
        };
        self.update_many(NOTICES, ids.into_iter().map(statement).collect()).await.map(drop)
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
