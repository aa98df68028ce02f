//! Inboxes: documents of [`INBOX`], each with up to 50 notices of one user. The latest notices are
//! in a document with a fixed id, the open bucket, to which notices are added without a
//! transaction. When it is full, a transaction copies it to a closed bucket, whose id has the
//! position of its first notice, and empties it.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use mongodb::bson::doc;
use mongodb::options::ReadConcern;
use tokio::time::Instant;

use crate::client::backoff::Backoff;
use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::commit::commit;
use crate::database::freshness::Freshness;
use crate::database::transaction::{Transaction, expect_matched};
use crate::database::writes::WriteCommand;
use crate::inbox::bucket::{
    Bucket, FIRST, NOTICE, NOTICES, OpenBucket, RECENT, addition, all, buckets_before, open, push,
    refusal, update_of, without_content,
};
use crate::schema::bson::{by_id, date, id_value, raw};
use crate::schema::fields::{ID, INBOX, PRIVATE, REQUESTS, REVISION, TIME, WIRE};
use crate::schema::request::{StoredRequest, request_document, request_id};
use crate::schema::tail::bucket_id;
use crate::schema::user::StoredUser;
use polynym_directory::clock::Now;
use polynym_directory::error::Error;
use polynym_directory::model::notice::Notice;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::mutation::IdempotencyKey;
use polynym_directory::mutation::merge_links::{MergeLinks, merged_into_of};
use polynym_directory::stores::{Delivery, InboxChange, InboxLimits, InboxPart};
use polynym_directory::timestamp::Timestamp;

/// The limit of inboxes in a command.
const INBOXES_PER_COMMAND: usize = 100;
/// The limit of inboxes that are read or written concurrently.
pub const MAX_CONCURRENT: usize = 8;

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

    /// Delivers a notice to users. Returns for each whether the inbox has it. Failed writes are
    /// repeated: delivery is idempotent.
    pub async fn deliver(&self, delivery: &Delivery) -> Result<Vec<bool>, Fault> {
        let Delivery { notice, users, limits, .. } = delivery;
        let deadline = Instant::now() + self.timeout;
        let mut delivered: HashMap<LocalityId, bool> = HashMap::new();
        for users in users.chunks(INBOXES_PER_COMMAND) {
            let push_all = || {
                let updates = users.iter().map(|user| push(*user, notice, *limits)).collect();
                self.update_unordered(INBOX, updates)
            };
            let backoff = Backoff::for_transaction(deadline);
            let refused = backoff.retry(push_all, Fault::is_retryable).await?;
            let deliveries =
                refused.into_iter().filter_map(|n| users.get(n)).map(|user| async move {
                    let deliver = || self.deliver_in_transaction(*user, notice, *limits, deadline);
                    let is_retryable = |fault: &Fault| fault.is_retryable() || fault.is_duplicate();
                    let backoff = Backoff::for_transaction(deadline);
                    Ok::<_, Fault>((*user, backoff.retry(deliver, is_retryable).await?))
                });
            let concurrent = stream::iter(deliveries.collect::<Vec<_>>());
            let outcomes = concurrent.buffer_unordered(MAX_CONCURRENT).try_collect::<Vec<_>>();
            delivered.extend(outcomes.await?);
        }
        let is_present = |user| delivered.get(user).copied().unwrap_or(true);
        Ok(users.iter().map(is_present).collect())
    }

    /// Delivers a notice to an inbox that is full or may have the notice, in a transaction. Returns
    /// whether the inbox has it: that of a removed user does not.
    async fn deliver_in_transaction(
        &self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
        deadline: Instant,
    ) -> Result<bool, Fault> {
        let versions = self.version_guard.versions()?;
        let mut transaction = Transaction::begin(self, &Freshness::default(), deadline)
            .await?
            .with_versions(versions);
        match transaction.notify(user, notice, limits).await {
            Ok(delivered) => commit(transaction, deadline).await.map(|_| delivered),
            Err(fault) => {
                transaction.abort().await;
                Err(fault)
            }
        }
    }

    /// See [`Inboxes::holders`](polynym_directory::stores::Inboxes::holders).
    pub async fn holders(
        &self,
        notice: LocalityId,
        users: Vec<LocalityId>,
    ) -> Result<Vec<LocalityId>, Fault> {
        let inbox = self.collection(INBOX);
        let find = |user| {
            let has = format!("{NOTICES}.{NOTICE}");
            let id = id_value(notice);
            let filter = doc! { ID: all(user), "$or": [{ has: &id }, { RECENT: &id }] };
            let find = self.find_document(&inbox, filter, doc! { ID: 1 });
            async move { Ok::<_, Fault>(find.await?.map(|_| user)) }
        };
        let found: Vec<_> = stream::iter(users.into_iter().map(find).collect::<Vec<_>>())
            .buffered(MAX_CONCURRENT)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
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
        before: Option<u64>,
        limit: usize,
        with_content: bool,
    ) -> Result<InboxPart, Fault> {
        let inbox = self.collection(INBOX);
        let projection = if with_content {
            doc! {}
        } else {
            without_content()
        };
        let (mut part, before) = (InboxPart::default(), before.unwrap_or(u64::MAX));
        // The first position of the buckets that were read. A bucket that begins there or later is
        // a copy that was made since.
        let mut first = before;
        loop {
            let count = (limit - part.entries.len()).div_ceil(OpenBucket::MAX_NOTICES as usize) + 1;
            let filter = buckets_before(user, first, part.last == 0);
            let mut options = self.find_options(doc! { ID: -1 }, count);
            options.projection = Some(projection.clone());
            let documents = self.find_documents(&inbox, filter, options).await?;
            for document in &documents {
                let bucket = Bucket::read(document)?;
                if part.last == 0 {
                    part.last = bucket.last();
                } else if bucket.first >= first {
                    continue;
                }
                bucket.add_to(&mut part.entries, before, limit, with_content)?;
                first = first.min(bucket.first);
            }
            if documents.len() < count || part.entries.len() >= limit {
                return Ok(part);
            }
        }
    }

    /// See [`Inboxes::change_inbox`](polynym_directory::stores::Inboxes::change_inbox). Repeats
    /// the update while buckets that were closed concurrently still have such notices.
    pub async fn change_inbox(&self, user: LocalityId, change: &InboxChange) -> Result<(), Fault> {
        let (update, remaining) = update_of(user, change);
        let inbox = self.collection(INBOX);
        let attempt = async || {
            self.update_unordered(INBOX, vec![update.clone()]).await?;
            let find = inbox.find_one(remaining.clone()).sort(doc! { ID: -1 });
            let with_id = find.projection(doc! { ID: 1 }).read_concern(ReadConcern::majority());
            let missed = with_id.max_time(self.timeout).await?;
            if missed.is_none() { Ok(()) } else { Err(Fault::CommitUnanswered) }
        };
        let backoff = Backoff::for_transaction(Instant::now() + self.timeout);
        backoff.retry(attempt, Fault::is_retryable).await
    }
}

impl Transaction<'_> {
    /// Adds a notice to the inbox of a user, unless the inbox has it. Returns false if the user was
    /// removed.
    pub async fn notify(
        &mut self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
    ) -> Result<bool, Fault> {
        let inbox = self.collections.collection(INBOX);
        let document = self.find_one(&inbox, doc! { ID: open(user) }).await?;
        let found = document.as_deref().map(OpenBucket::read).transpose()?;
        let Some(found) = found else {
            let document = raw(&OpenBucket::first(user, notice, limits))?;
            self.execute(WriteCommand::insert(INBOX, [document])).await?;
            return Ok(true);
        };
        if found.is_gone {
            return self.reopen(user, notice, limits).await;
        }
        if found.has(notice.id) {
            return Ok(true);
        }
        if found.has_room() {
            let change = doc! { ID: open(user), FIRST: found.first as i64 };
            let update = WriteCommand::update(INBOX, &change, &addition(notice, limits))?;
            expect_matched(self.execute(update).await?, 1)?;
            return Ok(true);
        }

        let closed = found.closed(user);
        let by_id = doc! { ID: closed.get(ID) };
        // The bucket may exist already if an older backup was restored.
        self.execute(WriteCommand::upsert(INBOX, &by_id, raw(&closed)?)?).await?;
        let (first, next) = (found.first, found.next(user, notice, limits));
        let is_first = doc! { ID: open(user), FIRST: first as i64 };
        let replace = WriteCommand::replace(INBOX, &is_first, raw(&next)?)?;
        expect_matched(self.execute(replace).await?, 1)?;
        self.remove_older(user, found.next_position(), limits).await?;
        Ok(true)
    }

    /// Reopens the inbox of a user who was removed and imported again.
    async fn reopen(
        &mut self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
    ) -> Result<bool, Fault> {
        let by_id = doc! { ID: id_value(user) };
        if self.find_one(&self.collections.users, by_id).await?.is_none() {
            return Ok(false);
        }
        let first = raw(&OpenBucket::first(user, notice, limits))?;
        let replace = WriteCommand::replace(INBOX, &doc! { ID: open(user) }, first)?;
        expect_matched(self.execute(replace).await?, 1)?;
        Ok(true)
    }

    /// Removes the buckets without any of the latest notices.
    async fn remove_older(
        &mut self,
        user: LocalityId,
        last: u64,
        limits: InboxLimits,
    ) -> Result<(), Fault> {
        let Some(oldest) = last.checked_sub(limits.count + OpenBucket::MAX_NOTICES) else {
            return Ok(());
        };
        let range = doc! { "$gte": bucket_id(user, 0), "$lte": bucket_id(user, oldest) };
        self.execute(WriteCommand::delete(INBOX, &doc! { ID: range })?).await?;
        Ok(())
    }

    /// Removes the inbox of a user. For a day it refuses notices, which may still be in flight.
    pub async fn delete_inbox(&mut self, user: LocalityId, now: Timestamp) -> Result<(), Fault> {
        let closed = doc! { ID: { "$gte": bucket_id(user, 0), "$lt": open(user) } };
        self.execute(WriteCommand::delete(INBOX, &closed)?).await?;
        let refusal = raw(&refusal(user, now))?;
        self.execute(WriteCommand::upsert(INBOX, &doc! { ID: open(user) }, refusal)?).await?;
        Ok(())
    }
}
