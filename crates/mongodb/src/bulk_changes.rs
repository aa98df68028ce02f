//! Bulk changes: documents of [`BULK`] by tenant and id. Each tenant has one more document, a
//! counter that a transaction increments when it starts or resumes a bulk change: of two concurrent
//! transactions one conflicts and counts again, so that the limit of running ones holds. The
//! batches of a list have documents of their own, apart from those that a tenant's reads pass.

use std::iter;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::freshness::Key;
use crate::database::operations::Mongo;
use crate::database::transaction::{Transaction, expect_matched};
use crate::schema::bson::{bytes, date, raw, read_fields, required};
use crate::schema::fields::{BULK, EXPIRES_AT, ID, LISTED, REVISION, RUNNING, TENANT, WIRE};
use polynym_directory::encoded::bulk_change::{decode_users, encode_users};
use polynym_directory::{
    BulkChange, BulkChangeKey, BulkChanges, BulkList, DueBulkChange, Error, Mutation, ReadRequest,
    ReadSet, Tenant, Timestamp, Write, WriteSet,
};
use polynym_store_common::operations::Operation;
use polynym_store_common::unreadable::report_unreadable_bulk;

/// Between a tenant and the id of a bulk change in the id of a document, and the next character.
const SEPARATOR: char = '/';
const AFTER_SEPARATOR: char = '0';
/// In front of the ids of the documents of lists: no tenant has it.
const LIST_MARK: char = '!';

#[async_trait]
impl BulkChanges for Mongo {
    async fn bulk_change(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Error> {
        let by_id = doc! { ID: document_id(tenant, id) };
        self.read(Operation::Bulk, |collections| async move {
            let found =
                collections.find_document(&collections.collection(BULK), by_id, doc! {}).await?;
            found.as_deref().map(read_change).transpose()
        })
        .await
    }

    async fn listed_users(
        &self,
        tenant: &Tenant,
        id: &str,
        batch: u32,
    ) -> Result<Vec<LocalityId>, Error> {
        let by_id = doc! { ID: batch_id(tenant, id, batch) };
        self.read(Operation::Bulk, |collections| async move {
            let found =
                collections.find_document(&collections.collection(BULK), by_id, doc! {}).await?;
            Ok(found.as_deref().map(read_users).transpose()?.unwrap_or_default())
        })
        .await
    }

    async fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Error> {
        let mut filter = all_of(tenant);
        filter.insert(WIRE, doc! { "$exists": true });
        self.read(Operation::Bulk, |collections| async move {
            let options = collections.time_limit();
            let found =
                collections.find_documents(&collections.collection(BULK), filter, options).await?;
            Ok(found.iter().filter_map(|document| readable(document)).collect())
        })
        .await
    }

    async fn due_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBulkChange>, Error> {
        self.due(doc! { RUNNING: true, EXPIRES_AT: { "$lte": date(now) } }, limit).await
    }

    async fn expired_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<BulkChangeKey>, Error> {
        let ended = doc! { "$exists": false };
        let filter = doc! { RUNNING: ended, EXPIRES_AT: { "$lte": date(now) } };
        let expired = self.due(filter, limit).await?;
        Ok(expired.into_iter().map(|change| change.key).collect())
    }

    async fn remove_bulk_changes(&self, tenant: &Tenant) -> Result<(), Error> {
        let (changes, lists) = (all_of(tenant), list_of(tenant.as_str()));
        self.write(Operation::Bulk, |collections| async move {
            collections.execute(WriteCommand::delete(BULK, &lists)?).await?;
            collections.execute(WriteCommand::delete(BULK, &changes)?).await.map(drop)
        })
        .await
    }
}

impl Mongo {
    /// The first bulk changes that match, by the time when they are due.
    async fn due(&self, filter: Document, limit: usize) -> Result<Vec<DueBulkChange>, Error> {
        self.read(Operation::Bulk, |collections| async move {
            let (bulk, mut count) = (collections.collection(BULK), limit);
            loop {
                let options = collections.find_options(doc! { EXPIRES_AT: 1 }, count);
                let found = collections.find_documents(&bulk, filter.clone(), options).await?;
                let changes = found.iter().filter_map(|document| readable(document));
                let due: Vec<_> = changes.map(DueBulkChange::from).take(limit).collect();
                // Those that cannot be read must not hide the others.
                if due.len() == limit || found.len() < count {
                    return Ok(due);
                }
                count *= 2;
            }
        })
        .await
    }
}

impl Transaction<'_> {
    /// Reads the bulk changes that a decision needs.
    pub async fn read_bulk_changes(
        &mut self,
        tenant: &Tenant,
        needs: &ReadRequest,
        read_set: &mut ReadSet,
    ) -> Result<(), Fault> {
        let bulk = self.collections.collection(BULK);
        if let Some(id) = &needs.bulk_change {
            let found = self.find_one(&bulk, doc! { ID: document_id(tenant, id) }).await?;
            self.bulk_revision = found.as_deref().map(revision).transpose()?;
            read_set.bulk.change = Some(found.as_deref().map(read_change).transpose()?);
            self.record_reads(iter::once(Key::Bulk(id.clone())));
        }
        if let Some(id) = &needs.undone_bulk_change {
            let found = self.find_one(&bulk, doc! { ID: document_id(tenant, id) }).await?;
            read_set.bulk.undone = Some(found.as_deref().map(read_change).transpose()?);
            self.record_reads(iter::once(Key::Bulk(id.to_string())));
        }
        if needs.running_bulk_changes {
            let mut running = all_of(tenant);
            running.insert(RUNNING, true);
            let found = self.find_documents(&bulk, running, None).await?;
            // One that cannot be read does not run.
            let readable = found.iter().filter(|document| read_change(document).is_ok());
            read_set.bulk.running = Some(readable.count());
            self.record_reads(iter::once(Key::RunningBulk));
        }
        Ok(())
    }

    /// Writes the bulk changes of a write set.
    pub async fn write_bulk_changes(
        &mut self,
        mutation: &Mutation,
        read_set: &ReadSet,
        write_set: &WriteSet,
    ) -> Result<(), Fault> {
        for write in &write_set.writes {
            match write {
                Write::PutBulkChange(change) => {
                    self.put_bulk_change(change, begins(change, read_set)).await?;
                }
                Write::PutBulkUsers(id, users) => {
                    self.put_bulk_users(&mutation.tenant, id, users).await?;
                }
                Write::RemoveBulkChange(id) => {
                    self.remove_bulk_change(&mutation.tenant, id).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Stores a bulk change over the one that was read.
    async fn put_bulk_change(&mut self, change: &BulkChange, begins: bool) -> Result<(), Fault> {
        if begins {
            let tenant = change.tenant.as_str();
            let filter = doc! { ID: format!("{tenant}{SEPARATOR}") };
            let count =
                doc! { "$inc": { REVISION: self.revision_step }, "$set": { TENANT: tenant } };
            self.execute(WriteCommand::upsert(BULK, &filter, raw(&count)?)?).await?;
        }
        let Some(revision) = self.bulk_revision else {
            let document = raw(&document(change, 0))?;
            self.execute(WriteCommand::insert(BULK, iter::once(document))).await?;
            return Ok(());
        };
        let document = raw(&document(change, revision + self.revision_step))?;
        let id = document_id(&change.tenant, &change.id);
        let filter = doc! { ID: id, REVISION: revision };
        let replace = WriteCommand::replace(BULK, &filter, document)?;
        expect_matched(self.execute(replace).await?, 1)
    }

    /// Stores a bulk change under its own state and time.
    pub async fn refile_bulk_change(&mut self, stored: &RawDocument) -> Result<(), Fault> {
        self.bulk_revision = Some(revision(stored)?);
        self.put_bulk_change(&read_change(stored)?, false).await
    }

    /// Removes the bulk change that was read.
    async fn remove_bulk_change(&mut self, tenant: &Tenant, id: &str) -> Result<(), Fault> {
        let filter = doc! { ID: document_id(tenant, id), REVISION: self.bulk_revision };
        expect_matched(self.execute(WriteCommand::delete_one(BULK, &filter)?).await?, 1)?;
        self.remove_bulk_users(&document_id(tenant, id)).await
    }

    /// Stores the users of a bulk change by a list, in place of those that it had.
    async fn put_bulk_users(
        &mut self,
        tenant: &Tenant,
        id: &str,
        users: &[LocalityId],
    ) -> Result<(), Fault> {
        let batches = users.chunks(BulkList::BATCH_USERS).zip(0..);
        let document = |(users, n): (&[LocalityId], u32)| {
            raw(&doc! {
                ID: batch_id(tenant, id, n), TENANT: tenant.as_str(), REVISION: 0_i64,
                LISTED: bytes(encode_users(users)),
            })
        };
        let documents = batches.map(document).collect::<Result<Vec<_>, _>>()?;
        // A list whose bulk change somebody has deleted by hand.
        self.remove_bulk_users(&document_id(tenant, id)).await?;
        self.execute(WriteCommand::insert(BULK, documents)).await.map(drop)
    }

    /// Removes the list of the bulk change whose document has this id.
    pub async fn remove_bulk_users(&mut self, document_id: &str) -> Result<(), Fault> {
        self.execute(WriteCommand::delete(BULK, &list_of(document_id))?).await.map(drop)
    }
}

/// Whether a write makes a bulk change run that does not run in the read set.
pub fn begins(change: &BulkChange, read_set: &ReadSet) -> bool {
    let before = read_set.bulk.change.as_ref().and_then(Option::as_ref);
    change.is_running() && !before.is_some_and(BulkChange::is_running)
}

fn document(change: &BulkChange, revision: i64) -> Document {
    let mut document = doc! {
        ID: document_id(&change.tenant, &change.id),
        TENANT: change.tenant.as_str(),
        REVISION: revision,
        EXPIRES_AT: date(change.due_time()),
        WIRE: bytes(change.encode()),
    };
    if change.is_running() {
        document.insert(RUNNING, true);
    }
    document
}

fn document_id(tenant: &Tenant, id: &str) -> String {
    format!("{tenant}{SEPARATOR}{id}")
}

/// The id of the document of a batch of a list: no id of a bulk change has the separator.
fn batch_id(tenant: &Tenant, id: &str, batch: u32) -> String {
    format!("{LIST_MARK}{tenant}{SEPARATOR}{id}{SEPARATOR}{batch:08}")
}

/// The key and the number of the batch of a list with this id of a document.
pub fn read_batch_key(id: &str) -> Option<((&str, &str), u32)> {
    let (tenant, rest) = read_key(id.strip_prefix(LIST_MARK)?).ok()?;
    let (id, batch) = read_key(rest).ok()?;
    Some(((tenant, id), batch.parse().ok()?))
}

/// The filter for the batches of the list of the bulk change whose document has this id.
pub fn list_of(document_id: &str) -> Document {
    all_under(&format!("{LIST_MARK}{document_id}"))
}

/// The users of the document of a batch.
pub fn read_users(document: &RawDocument) -> Result<Vec<LocalityId>, Fault> {
    let [users] = read_fields(document, [LISTED])?;
    decode_users(required(LISTED, users, RawBsonRef::as_binary)?.bytes).map_err(Fault::damaged)
}

/// The filter for all documents of a tenant but the lists.
fn all_of(tenant: &Tenant) -> Document {
    all_under(tenant.as_str())
}

/// The filter for all documents whose ids begin with this and a separator.
pub fn all_under(prefix: &str) -> Document {
    let [first, end] = [SEPARATOR, AFTER_SEPARATOR].map(|last| format!("{prefix}{last}"));
    doc! { ID: { "$gte": first, "$lt": end } }
}

/// The bulk change of a document. Fails if the document has the id of another one.
pub fn read_change(document: &RawDocument) -> Result<BulkChange, Fault> {
    let [id, wire] = read_fields(document, [ID, WIRE])?;
    let key = read_key(required(ID, id, RawBsonRef::as_str)?)?;
    let wire = required(WIRE, wire, RawBsonRef::as_binary)?.bytes;
    BulkChange::decode(key, wire).map_err(Fault::damaged)
}

/// Whether a document has the tenant, the state and the time of its bulk change.
pub fn is_filed_under_own(stored: &RawDocument, change: &BulkChange) -> Result<bool, Fault> {
    let stored = Document::try_from(stored).map_err(Fault::damaged)?;
    let own = document(change, 0);
    Ok([TENANT, EXPIRES_AT, RUNNING].iter().all(|field| stored.get(field) == own.get(field)))
}

/// The bulk change of a document; none if it cannot be read.
fn readable(document: &RawDocument) -> Option<BulkChange> {
    let report = |fault: &Fault| {
        let key = document.get_str(ID).ok().and_then(|id| read_key(id).ok());
        let (tenant, id) = key.unwrap_or_default();
        report_unreadable_bulk(tenant, id, fault);
    };
    read_change(document).inspect_err(report).ok()
}

pub fn revision(document: &RawDocument) -> Result<i64, Fault> {
    let [revision] = read_fields(document, [REVISION])?;
    required(REVISION, revision, RawBsonRef::as_i64)
}

/// The tenant and the id in the id of a document.
pub fn read_key(id: &str) -> Result<(&str, &str), Fault> {
    id.split_once(SEPARATOR).ok_or_else(|| Fault::damaged("the id of no bulk change"))
}
