//! The statements of a transaction on tenants and the names of their attributes.

use mongodb::bson::doc;

use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::transaction::{Transaction, expect_matched};
use crate::store::mongo::schema::bson::{by_id, raw};
use crate::store::mongo::schema::fields::{ID, NAMES, REVISION};
use crate::store::mongo::schema::preserved::with_epoch;
use crate::store::mongo::schema::tenant::tenant_document;

impl Transaction<'_> {
    pub async fn write_tenant(&mut self, tenant: &TenantRecord) -> Result<(), Fault> {
        let tenants = &self.collections.tenants;
        let Some(preserved) = &self.tenant else {
            let document = raw(&with_epoch(tenant_document(tenant, 0), self.epoch, None))?;
            tenants.insert_one(document).session(&mut self.session).await?;
            return Ok(());
        };

        let filter = doc! { ID: tenant.name.as_str(), REVISION: preserved.revision };
        let document = tenant_document(tenant, preserved.revision + self.revision_step);
        let document = raw(&with_epoch(document, self.epoch, Some(preserved)))?;
        let replaced = tenants.replace_one(filter, document).session(&mut self.session).await?;
        expect_matched(replaced.matched_count, 1)
    }

    pub async fn delete_tenant(&mut self, name: &Tenant) -> Result<(), Fault> {
        let revision = self.tenant.as_ref().map(|preserved| preserved.revision);
        let filter = doc! { ID: name.as_str(), REVISION: revision };
        self.needs_epoch = true;
        let tenants = &self.collections.tenants;
        let deleted = tenants.delete_one(filter).session(&mut self.session).await?;
        expect_matched(deleted.deleted_count, 1)
    }

    /// Deletes the names of a tenant's attributes, but keeps track of the used tokens.
    pub async fn delete_names(&mut self, tenant: &Tenant) -> Result<(), Fault> {
        let names = self.collections.names_to_delete(tenant.as_str()).await?;
        let Some((ids, tombstone)) = names else { return Ok(()) };
        let collection = self.collections.collection(NAMES);
        if !ids.is_empty() {
            collection.delete_many(by_id(ids)).session(&mut self.session).await?;
        }
        let id = tombstone.get_str(ID).map_err(Fault::damaged)?;
        collection.replace_one(doc! { ID: id }, &tombstone).session(&mut self.session).await?;
        Ok(())
    }
}
