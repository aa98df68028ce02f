//! Bulk changes: documents of [`BULK`] by tenant and id. Each tenant has one more document, a
//! counter that a transaction increments when it starts or resumes a bulk change: of two concurrent
//! transactions one conflicts and counts again, so that the limit of running ones holds.

use std::iter;

use async_trait::async_trait;
use mongodb::bson::{Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::database::operations::Mongo;
use crate::database::transaction::{Transaction, expect_matched};
use crate::database::writes::WriteCommand;
use crate::schema::bson::{bytes, date, raw, read_fields, required};
use crate::schema::fields::{BULK, EXPIRES_AT, ID, REVISION, RUNNING, TENANT, WIRE};
use polynym_directory::error::Error;
use polynym_directory::model::bulk::change::BulkChange;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::mutation::Mutation;
use polynym_directory::mutation::read_set::{ReadRequest, ReadSet, Write, WriteSet};
use polynym_directory::stores::BulkChanges;
use polynym_directory::timestamp::Timestamp;

/// Between a tenant and the id of a bulk change in the id of a document, and the next character.
const SEPARATOR: char = '/';
const AFTER_SEPARATOR: char = '0';

#[async_trait]
impl BulkChanges for Mongo {
    async fn bulk_change(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Error> {
        let by_id = doc! { ID: document_id(tenant, id) };
        self.read(|own| async move {
            let found = own.find_document(&own.collection(BULK), by_id, doc! {}).await?;
            found.as_deref().map(read_change).transpose()
        })
        .await
    }

    async fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Error> {
        let mut filter = all_of(tenant);
        filter.insert(WIRE, doc! { "$exists": true });
        self.read(|own| async move {
            let options = own.time_limit();
            let found = own.find_documents(&own.collection(BULK), filter, options).await?;
            found.iter().map(|document| read_change(document)).collect()
        })
        .await
    }

    async fn due_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Tenant, String)>, Error> {
        self.due(doc! { RUNNING: true, EXPIRES_AT: { "$lte": date(now) } }, limit).await
    }

    async fn expired_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Tenant, String)>, Error> {
        let ended = doc! { "$exists": false };
        self.due(doc! { RUNNING: ended, EXPIRES_AT: { "$lte": date(now) } }, limit).await
    }

    async fn remove_bulk_changes(&self, tenant: &Tenant) -> Result<(), Error> {
        let all = all_of(tenant);
        self.write(|own| async move {
            let delete = WriteCommand::delete(BULK, &all)?;
            own.execute(delete).await.map(drop)
        })
        .await
    }
}

impl Mongo {
    /// The keys of the first documents that match, by the time when they are due.
    async fn due(&self, filter: Document, limit: usize) -> Result<Vec<(Tenant, String)>, Error> {
        self.read(|own| async move {
            let mut options = own.find_options(doc! { EXPIRES_AT: 1 }, limit);
            options.projection = Some(doc! { TENANT: 1 });
            let found = own.find_documents(&own.collection(BULK), filter, options).await?;
            found.iter().map(|document| read_key(document)).collect()
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
        }
        if needs.running_bulk_changes {
            let mut running = all_of(tenant);
            running.insert(RUNNING, true);
            let count = self.find_documents(&bulk, running, None).await?.len();
            read_set.bulk.running = Some(count);
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
                    self.put_bulk_change(
                        change,
                        read_set.bulk.change.as_ref().and_then(Option::as_ref),
                    )
                    .await?;
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
    async fn put_bulk_change(
        &mut self,
        change: &BulkChange,
        before: Option<&BulkChange>,
    ) -> Result<(), Fault> {
        if change.is_running() && !before.is_some_and(BulkChange::is_running) {
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

    /// Removes the bulk change that was read.
    async fn remove_bulk_change(&mut self, tenant: &Tenant, id: &str) -> Result<(), Fault> {
        let filter = doc! { ID: document_id(tenant, id), REVISION: self.bulk_revision };
        expect_matched(self.execute(WriteCommand::delete_one(BULK, &filter)?).await?, 1)
    }
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

/// The filter for all documents of a tenant.
fn all_of(tenant: &Tenant) -> Document {
    let [first, end] = [SEPARATOR, AFTER_SEPARATOR].map(|last| format!("{tenant}{last}"));
    doc! { ID: { "$gte": first, "$lt": end } }
}

fn read_change(document: &RawDocument) -> Result<BulkChange, Fault> {
    let [wire] = read_fields(document, [WIRE])?;
    let wire = required(WIRE, wire, RawBsonRef::as_binary)?.bytes;
    BulkChange::decode(wire).map_err(Fault::damaged)
}

fn revision(document: &RawDocument) -> Result<i64, Fault> {
    let [revision] = read_fields(document, [REVISION])?;
    required(REVISION, revision, RawBsonRef::as_i64)
}

/// The tenant and the id of a bulk change.
fn read_key(document: &RawDocument) -> Result<(Tenant, String), Fault> {
    let [id, tenant] = read_fields(document, [ID, TENANT])?;
    let tenant = required(TENANT, tenant, RawBsonRef::as_str)?;
    let id = required(ID, id, RawBsonRef::as_str)?;
    let id = id.strip_prefix(tenant).and_then(|rest| rest.strip_prefix(SEPARATOR));
    let id = id.ok_or_else(|| Fault::damaged("a bulk change of another tenant"))?;
    Ok((Tenant::parse(tenant).map_err(Fault::damaged)?, id.to_owned()))
}
