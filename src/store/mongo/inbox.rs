//! Inboxes: documents of [`INBOX`], each with up to 50 notices of one user. The latest stand in a
//! document with a fixed id, the open bucket, to which notices are added without a transaction.
//! When it is full, a transaction copies it to a bucket of its own, which begins with the number
//! of its first notice, and begins it anew.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::options::{Acknowledgment, ReadConcern, WriteConcern};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::collections::Collections;
use super::commit::commit;
use super::error::Fault;
use super::freshness::Freshness;
use super::inbox_bucket::{
    Bucket, FIRST, NOTICE, NOTICES, OpenBucket, RECENT, addition, all, buckets_before,
    content_left_out, open, push, refusal, update_of,
};
use super::schema::{
    ID, INBOX, PRIVATE, REVISION, StoredRequest, StoredUser, WIRE, id_value, request_document,
    request_id,
};
use super::tail::bucket_id;
use super::transaction::{Transaction, all_there, raw};
use crate::directory::error::Error;
use crate::directory::model::notice::Notice;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::IdempotencyKey;
use crate::directory::stores::{Delivery, InboxChange, InboxLimits, InboxPart};

/// The inboxes of one command.
const UPDATES: usize = 100;
/// Inboxes that are read or begun anew at once.
const AT_ONCE: usize = 8;

/// The outcome of a delivery to one inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is there.
    There,
    /// The user was removed.
    Gone,
}

impl Collections {
    /// See [`Inboxes::begin_notice`](crate::directory::stores::Inboxes::begin_notice).
    pub async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        notice: LocalityId,
        time: Timestamp,
    ) -> Result<Result<(LocalityId, bool), Error>, Fault> {
        let document = raw(&request_document(request, notice, time))?;
        let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let insert = self.requests.insert_one(document).write_concern(majority);
        match insert.await.map_err(Fault::from) {
            Ok(_) => return Ok(Ok((notice, false))),
            Err(fault) if fault.is_duplicate() => {}
            Err(fault) => return Err(fault),
        }
        let find = self.requests.find_one(doc! { ID: request_id(request) });
        let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
        let Some(stored) = find.await? else { return Err(Fault::Late) };
        let stored = StoredRequest::read(&stored)?;
        if stored.request_hash != request.request_hash {
            return Ok(Err(Error::RequestIdReused));
        }
        Ok(Ok((IdempotencyKey::stored_subject(stored.subject), true)))
    }

    /// Delivers a notice to users. Returns for each whether it is there. Failed writes are
    /// repeated: an inbox that has the notice already does not change.
    pub async fn deliver(&self, delivery: &Delivery) -> Result<Vec<bool>, Fault> {
        let Delivery { notice, users, limits, .. } = delivery;
        let deadline = Instant::now() + self.timeout;
        let mut delivered: HashMap<LocalityId, Delivered> = HashMap::new();
        for users in users.chunks(UPDATES) {
            let push_all = || {
                let updates = users.iter().map(|user| push(*user, notice, *limits)).collect();
                self.update_unordered(INBOX, updates)
            };
            let backoff = Backoff::of_transaction(deadline);
            let refused = backoff.between(push_all, Fault::may_pass).await?;
            let others = refused.into_iter().filter_map(|n| users.get(n).copied());
            let others = others.map(|user| async move {
                let alone = || self.deliver_alone(user, notice, *limits, deadline);
                let passes = |fault: &Fault| fault.may_pass() || fault.is_duplicate();
                let backoff = Backoff::of_transaction(deadline);
                Ok::<_, Fault>((user, backoff.between(alone, passes).await?))
            });
            let others = stream::iter(others.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
            delivered.extend(others.try_collect::<Vec<_>>().await?);
        }
        let is_there = |user| delivered.get(user).copied() != Some(Delivered::Gone);
        Ok(users.iter().map(is_there).collect())
    }

    /// Delivers a notice to an inbox that is full, or may have it.
    async fn deliver_alone(
        &self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
        deadline: Instant,
    ) -> Result<Delivered, Fault> {
        let versions = self.fence.versions()?;
        let mut transaction =
            Transaction::begin(self, &Freshness::default()).await?.under(versions);
        match transaction.notify(user, notice, limits).await {
            Ok(delivered) => commit(transaction, deadline).await.map(|()| delivered),
            Err(fault) => {
                transaction.abort().await;
                Err(fault)
            }
        }
    }

    /// See [`Inboxes::holders`](crate::directory::stores::Inboxes::holders).
    pub async fn holders(
        &self,
        notice: LocalityId,
        users: Vec<LocalityId>,
    ) -> Result<Vec<LocalityId>, Fault> {
        let inbox = self.database.collection::<RawDocumentBuf>(INBOX);
        let find = |user| {
            let has = format!("{NOTICES}.{NOTICE}");
            let id = id_value(notice);
            let filter = doc! { ID: all(user), "$or": [{ has: &id }, { RECENT: &id }] };
            let find = inbox.find_one(filter).projection(doc! { ID: 1 });
            let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
            async move { Ok::<_, Fault>(find.await?.map(|_| user)) }
        };
        let found: Vec<_> = stream::iter(users.into_iter().map(find).collect::<Vec<_>>())
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// See [`Inboxes::inboxes`](crate::directory::stores::Inboxes::inboxes).
    pub async fn inboxes(
        &self,
        tenant: &Tenant,
        user: LocalityId,
    ) -> Result<Option<Vec<LocalityId>>, Fault> {
        let find = self.users.find_one(doc! { ID: id_value(user) });
        let find = find.projection(doc! { REVISION: 1, WIRE: 1, PRIVATE: 1 });
        let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
        let Some(document) = find.await? else { return Ok(None) };
        let record = StoredUser::read(&document)?.decode_without_attributes()?;
        let is_own = record.user.tenant == *tenant;
        Ok(is_own.then(|| [vec![user], record.private.merged].concat()))
    }

    /// See [`Inboxes::inbox`](crate::directory::stores::Inboxes::inbox).
    pub async fn inbox(
        &self,
        user: LocalityId,
        before: Option<u64>,
        limit: usize,
        with_content: bool,
    ) -> Result<InboxPart, Fault> {
        let inbox = self.database.collection::<RawDocumentBuf>(INBOX);
        let projection = if with_content {
            doc! {}
        } else {
            content_left_out()
        };
        let (mut part, before) = (InboxPart::default(), before.unwrap_or(u64::MAX));
        // The position with which the buckets begin that were read. One that begins there or later
        // is a copy, made meanwhile.
        let mut first = before;
        loop {
            let count = (limit - part.entries.len()).div_ceil(OpenBucket::MOST as usize) + 1;
            let find =
                inbox.find(buckets_before(user, first, part.last == 0)).sort(doc! { ID: -1 });
            let find = find.limit(count as i64).projection(projection.clone());
            let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
            let documents: Vec<_> = find.await?.try_collect().await?;
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

    /// See [`Inboxes::change_inbox`](crate::directory::stores::Inboxes::change_inbox). What
    /// was copied to another bucket meanwhile is looked for afterwards, from the open bucket on,
    /// and changed again.
    pub async fn change_inbox(&self, user: LocalityId, change: &InboxChange) -> Result<(), Fault> {
        let (update, left) = update_of(user, change);
        let inbox = self.database.collection::<RawDocumentBuf>(INBOX);
        let attempt = async || {
            self.update_unordered(INBOX, vec![update.clone()]).await?;
            let find = inbox.find_one(left.clone()).sort(doc! { ID: -1 });
            let find = find.projection(doc! { ID: 1 }).read_concern(ReadConcern::majority());
            let left = find.max_time(self.timeout).await?;
            if left.is_none() { Ok(()) } else { Err(Fault::Unanswered) }
        };
        let backoff = Backoff::of_transaction(Instant::now() + self.timeout);
        backoff.between(attempt, Fault::may_pass).await
    }
}

impl Transaction<'_> {
    /// Adds a notice to the inbox of a user, unless that has it.
    pub async fn notify(
        &mut self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
    ) -> Result<Delivered, Fault> {
        let inbox = self.collections.database.collection::<RawDocumentBuf>(INBOX);
        let found = self.find_one(&inbox, doc! { ID: open(user) }).await?;
        let found = found.as_deref().map(OpenBucket::read).transpose()?;
        let Some(found) = found else {
            let document = raw(&OpenBucket::first(user, notice, limits))?;
            inbox.insert_one(document).session(&mut self.session).await?;
            return Ok(Delivered::There);
        };
        if found.is_gone {
            return self.renew(user, notice, limits).await;
        }
        if found.has(notice.id) {
            return Ok(Delivered::There);
        }
        if found.has_room() {
            let change = doc! { ID: open(user), FIRST: found.first as i64 };
            let update = inbox.update_one(change, addition(notice, limits));
            all_there(update.session(&mut self.session).await?.matched_count, 1)?;
            return Ok(Delivered::There);
        }

        let closed = found.closed(user);
        let by_id = doc! { ID: closed.get(ID) };
        // There may be one already, where an older backup was restored.
        let replace = inbox.replace_one(by_id, raw(&closed)?).upsert(true);
        replace.session(&mut self.session).await?;
        let (first, next) = (found.first, found.next(user, notice, limits));
        let replace = inbox.replace_one(doc! { ID: open(user), FIRST: first as i64 }, raw(&next)?);
        let replaced = replace.session(&mut self.session).await?.matched_count;
        all_there(replaced, 1)?;
        self.remove_older(user, found.next_position(), limits).await?;
        Ok(Delivered::There)
    }

    /// Begins the inbox of a user anew who was removed, and is there again by an import.
    async fn renew(
        &mut self,
        user: LocalityId,
        notice: &Notice,
        limits: InboxLimits,
    ) -> Result<Delivered, Fault> {
        let by_id = doc! { ID: id_value(user) };
        if self.find_one(&self.collections.users, by_id).await?.is_none() {
            return Ok(Delivered::Gone);
        }
        let inbox = self.collections.database.collection::<RawDocumentBuf>(INBOX);
        let first = raw(&OpenBucket::first(user, notice, limits))?;
        let replace = inbox.replace_one(doc! { ID: open(user) }, first);
        all_there(replace.session(&mut self.session).await?.matched_count, 1)?;
        Ok(Delivered::There)
    }

    /// Removes the buckets with nothing among the latest notices.
    async fn remove_older(
        &mut self,
        user: LocalityId,
        last: u64,
        limits: InboxLimits,
    ) -> Result<(), Fault> {
        let Some(oldest) = last.checked_sub(limits.count + OpenBucket::MOST) else { return Ok(()) };
        let inbox = self.collections.database.collection::<RawDocumentBuf>(INBOX);
        let range = doc! { "$gte": bucket_id(user, 0), "$lte": bucket_id(user, oldest) };
        inbox.delete_many(doc! { ID: range }).session(&mut self.session).await?;
        Ok(())
    }

    /// Removes the inbox of a user. For a day it takes no notices: one may be on its way.
    pub async fn forget_inbox(&mut self, user: LocalityId, now: Timestamp) -> Result<(), Fault> {
        let inbox = self.collections.database.collection::<RawDocumentBuf>(INBOX);
        let closed = doc! { ID: { "$gte": bucket_id(user, 0), "$lt": open(user) } };
        inbox.delete_many(closed).session(&mut self.session).await?;
        let refusal = raw(&refusal(user, now))?;
        let replace = inbox.replace_one(doc! { ID: open(user) }, refusal).upsert(true);
        replace.session(&mut self.session).await?;
        Ok(())
    }
}
