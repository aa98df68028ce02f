//! Deliveries: documents of [`BULK`], as those of bulk changes, with a mark in front of the tenant
//! and the id. Each tenant has one more document, a counter that a transaction increments when it
//! creates a delivery: of two concurrent transactions one conflicts and counts again, so that the
//! limit of a tenant holds.

use std::iter;

use async_trait::async_trait;
use mongodb::bson::{Document, RawBsonRef, RawDocument, doc};

use crate::bulk_changes::{all_under, read_key, revision};
use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::freshness::Key;
use crate::database::operations::Mongo;
use crate::database::transaction::{Transaction, expect_matched};
use crate::schema::bson::{bytes, date, raw, read_fields, required};
use crate::schema::fields::{BULK, EXPIRES_AT, ID, REVISION, RUNNING, TENANT, WIRE};
use polynym_directory::{
    Deliveries, DeliveryKey, Error, EventDelivery, Mutation, ReadRequest, ReadSet, Tenant,
    Timestamp, Write, WriteSet,
};
use polynym_store_common::operations::Operation;
use polynym_store_common::unreadable::report_unreadable_delivery;

/// In front of the ids of documents of deliveries: no tenant has it.
const MARK: char = '@';
/// Between a tenant and the id of a delivery.
const SEPARATOR: char = '/';

#[async_trait]
impl Deliveries for Mongo {
    async fn delivery(&self, tenant: &Tenant, id: &str) -> Result<Option<EventDelivery>, Error> {
        let by_id = doc! { ID: document_id(tenant, id) };
        self.read(Operation::Delivery, |collections| async move {
            let found =
                collections.find_document(&collections.collection(BULK), by_id, doc! {}).await?;
            found.as_deref().map(read_delivery).transpose()
        })
        .await
    }

    async fn deliveries(&self, tenant: &Tenant) -> Result<Vec<EventDelivery>, Error> {
        let filter = all_of(tenant);
        self.read(Operation::Delivery, |collections| async move {
            let options = collections.time_limit();
            let found =
                collections.find_documents(&collections.collection(BULK), filter, options).await?;
            let mut deliveries: Vec<_> =
                found.iter().filter_map(|document| readable(document)).collect();
            deliveries.sort_by(|one, other| one.id.cmp(&other.id));
            Ok(deliveries)
        })
        .await
    }

    async fn due_deliveries(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryKey>, Error> {
        let filter = doc! { RUNNING: false, EXPIRES_AT: { "$lte": date(now) } };
        self.read(Operation::Delivery, |collections| async move {
            let mut options = collections.find_options(doc! { EXPIRES_AT: 1 }, limit);
            options.projection = Some(doc! { ID: 1 });
            let found =
                collections.find_documents(&collections.collection(BULK), filter, options).await?;
            Ok(found.iter().filter_map(|document| readable_key(document)).collect())
        })
        .await
    }

    async fn remove_deliveries(&self, tenant: &Tenant) -> Result<(), Error> {
        let deliveries = all_under(&format!("{MARK}{tenant}"));
        self.write(Operation::Delivery, |collections| async move {
            collections.execute(WriteCommand::delete(BULK, &deliveries)?).await.map(drop)
        })
        .await
    }
}

impl Transaction<'_> {
    /// Reads the deliveries that a decision needs.
    pub async fn read_deliveries(
        &mut self,
        tenant: &Tenant,
        needs: &ReadRequest,
        read_set: &mut ReadSet,
    ) -> Result<(), Fault> {
        let bulk = self.collections.collection(BULK);
        if let Some(id) = &needs.delivery {
            let found = self.find_one(&bulk, doc! { ID: document_id(tenant, id) }).await?;
            self.delivery_revision = found.as_deref().map(revision).transpose()?;
            read_set.deliveries.delivery = Some(found.as_deref().map(read_delivery).transpose()?);
            self.record_reads(iter::once(Key::Delivery(id.to_string())));
        }
        if needs.count_deliveries {
            let found = self.find_documents(&bulk, all_of(tenant), None).await?;
            read_set.deliveries.count = Some(found.len());
            self.record_reads(iter::once(Key::Deliveries));
        }
        Ok(())
    }

    /// Writes the bulk changes and the deliveries of a write set.
    pub async fn write_jobs(
        &mut self,
        mutation: &Mutation,
        read_set: &ReadSet,
        write_set: &WriteSet,
    ) -> Result<(), Fault> {
        self.write_bulk_changes(mutation, read_set, write_set).await?;
        for write in &write_set.writes {
            match write {
                Write::PutDelivery(delivery) => self.put_delivery(delivery).await?,
                Write::RemoveDelivery(id) => self.remove_delivery(&mutation.tenant, id).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Stores a delivery over the one that was read.
    async fn put_delivery(&mut self, delivery: &EventDelivery) -> Result<(), Fault> {
        let Some(revision) = self.delivery_revision else {
            let tenant = delivery.tenant.as_str();
            let filter = doc! { ID: format!("{MARK}{tenant}{SEPARATOR}") };
            let count =
                doc! { "$inc": { REVISION: self.revision_step }, "$set": { TENANT: tenant } };
            self.execute(WriteCommand::upsert(BULK, &filter, raw(&count)?)?).await?;
            let document = raw(&document(delivery, 0))?;
            self.execute(WriteCommand::insert(BULK, iter::once(document))).await?;
            return Ok(());
        };
        let document = raw(&document(delivery, revision + self.revision_step))?;
        let id = document_id(&delivery.tenant, &delivery.id);
        let filter = doc! { ID: id, REVISION: revision };
        expect_matched(self.execute(WriteCommand::replace(BULK, &filter, document)?).await?, 1)
    }

    /// Removes the delivery that was read.
    async fn remove_delivery(&mut self, tenant: &Tenant, id: &str) -> Result<(), Fault> {
        let filter = doc! { ID: document_id(tenant, id), REVISION: self.delivery_revision };
        expect_matched(self.execute(WriteCommand::delete_one(BULK, &filter)?).await?, 1)
    }
}

/// Whether a document of [`BULK`] is of deliveries.
pub fn is_of_deliveries(document_id: &str) -> bool {
    document_id.starts_with(MARK)
}

/// Whether a document has the delivery of its id.
pub fn is_readable(document: &RawDocument) -> bool {
    read_delivery(document).is_ok() && revision(document).is_ok()
}

/// The document of a delivery. Its state is that of no bulk change: the queries for these do not
/// find it.
fn document(delivery: &EventDelivery, revision: i64) -> Document {
    let mut document = doc! {
        ID: document_id(&delivery.tenant, &delivery.id),
        TENANT: delivery.tenant.as_str(),
        REVISION: revision,
        RUNNING: false,
        WIRE: bytes(delivery.encode()),
    };
    if let Some(due) = delivery.due_time() {
        document.insert(EXPIRES_AT, date(due));
    }
    document
}

fn document_id(tenant: &Tenant, id: &str) -> String {
    format!("{MARK}{tenant}{SEPARATOR}{id}")
}

/// The filter for the documents of a tenant's deliveries.
fn all_of(tenant: &Tenant) -> Document {
    let mut filter = all_under(&format!("{MARK}{tenant}"));
    filter.insert(WIRE, doc! { "$exists": true });
    filter
}

/// The delivery of a document. Fails if the document has the id of another one.
fn read_delivery(document: &RawDocument) -> Result<EventDelivery, Fault> {
    let [id, wire] = read_fields(document, [ID, WIRE])?;
    let key = delivery_key(required(ID, id, RawBsonRef::as_str)?)?;
    let wire = required(WIRE, wire, RawBsonRef::as_binary)?.bytes;
    EventDelivery::decode(key, wire).map_err(Fault::damaged)
}

/// The delivery of a document; none if it cannot be read.
fn readable(document: &RawDocument) -> Option<EventDelivery> {
    let report = |fault: &Fault| {
        let key = document.get_str(ID).ok().and_then(|id| delivery_key(id).ok());
        let (tenant, id) = key.unwrap_or_default();
        report_unreadable_delivery(tenant, id, fault);
    };
    read_delivery(document).inspect_err(report).ok()
}

/// The key of a document; none if it cannot be read. It hides no other.
fn readable_key(document: &RawDocument) -> Option<DeliveryKey> {
    let report = |fault: &Fault| report_unreadable_delivery("", "", fault);
    key_of(document).inspect_err(report).ok()
}

fn key_of(document: &RawDocument) -> Result<DeliveryKey, Fault> {
    let [id] = read_fields(document, [ID])?;
    let (tenant, id) = delivery_key(required(ID, id, RawBsonRef::as_str)?)?;
    Ok((Tenant::parse(tenant).map_err(Fault::damaged)?, id.to_owned()))
}

/// The tenant and the id in the id of a document.
fn delivery_key(id: &str) -> Result<(&str, &str), Fault> {
    read_key(id.strip_prefix(MARK).ok_or_else(|| Fault::damaged("the id of no delivery"))?)
}
