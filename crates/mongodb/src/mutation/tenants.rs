//! The statements of a transaction on tenants and the names of their attributes.

use mongodb::bson::doc;

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::transaction::{Transaction, expect_matched};
use crate::schema::bson::{by_id, raw};
use crate::schema::fields::{EPOCH, ID, NAMES, REVISION, TENANTS};
use crate::schema::preserved::with_epoch;
use crate::schema::tenant::tenant_document;
use polynym_directory::{Tenant, TenantRecord};

impl Transaction<'_> {
    pub async fn write_tenant(&mut self, tenant: &TenantRecord) -> Result<(), Fault> {
        let Some(preserved) = &self.tenant else {
            let document = raw(&with_epoch(tenant_document(tenant, 0), self.epoch, None))?;
            self.execute(WriteCommand::insert(TENANTS, [document])).await?;
            return Ok(());
        };

        let filter = doc! { ID: tenant.name.as_str(), REVISION: preserved.revision };
        let document = tenant_document(tenant, preserved.revision + self.revision_step);
        let document = raw(&with_epoch(document, self.epoch, Some(preserved)))?;
        let replace = WriteCommand::replace(TENANTS, &filter, document)?;
        expect_matched(self.execute(replace).await?, 1)
    }

    pub async fn delete_tenant(&mut self, name: &Tenant) -> Result<(), Fault> {
        let mut revision = self.tenant.as_ref().map(|preserved| preserved.revision);
        // MongoDB validates neither deletions nor updates that change nothing: see users.
        if let Some(revision) = &mut revision {
            let filter = doc! { ID: name.as_str(), REVISION: *revision };
            let step = self.revision_step;
            let change = doc! { "$set": { EPOCH: self.epoch }, "$inc": { REVISION: step } };
            let confirm = WriteCommand::update(TENANTS, &filter, &change)?;
            expect_matched(self.execute(confirm).await?, 1)?;
            self.is_in_epoch = true;
            *revision += step;
        }
        let filter = doc! { ID: name.as_str(), REVISION: revision };
        let deleted = self.execute(WriteCommand::delete_one(TENANTS, &filter)?).await?;
        expect_matched(deleted, 1)
    }

    /// Deletes the names of a tenant's attributes, but keeps track of the used tokens.
    pub async fn delete_names(&mut self, tenant: &Tenant) -> Result<(), Fault> {
        let names = self.collections.names_to_delete(tenant.as_str()).await?;
        let Some((ids, tombstone)) = names else { return Ok(()) };
        if !ids.is_empty() {
            self.execute(WriteCommand::delete(NAMES, &by_id(ids))?).await?;
        }
        let id = tombstone.get_str(ID).map_err(Fault::damaged)?;
        let by_id = doc! { ID: id };
        self.execute(WriteCommand::replace(NAMES, &by_id, tombstone)?).await?;
        Ok(())
    }
}
