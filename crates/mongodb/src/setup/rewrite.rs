//! The rewrite of users of an older schema, whose attributes are in their wire form. A user that
//! changes concurrently is skipped: a server has rewritten it.

use std::collections::HashMap;

use mongodb::bson::{Bson, Document, RawDocument, doc};

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::collections::Collections;
use crate::schema::attributes::{ATTRIBUTES, field_array, parted};
use crate::schema::bson::{bson_id, id_value, raw};
use crate::schema::fields::{EPOCH, ID, REVISION, TENANTS, USERS};
use crate::schema::preserved::{PreservedFields, with_epoch};
use crate::schema::tail::Tail;
use crate::schema::tenant::{read_tenant, tenant_document};
use crate::schema::user::{StoredUser, user_document};
use crate::schema::versions::Versions;
use polynym_directory::model::policies::Policies;
use polynym_directory::model::record::Record;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::model::tenant_record::TenantRecord;
use polynym_directory::search::Derived;
use polynym_directory::timestamp::Timestamp;
use polynym_store_common::searched::IndexedAttributes;

/// The users of one step.
const PAGE_SIZE: usize = 500;

impl Collections {
    /// Rewrites the next users of an older schema after `after`. Returns the last of them and the
    /// number of rewritten users; `None` if there are no more.
    pub async fn rewrite_users(
        &self,
        after: &Bson,
        versions: Versions,
    ) -> Result<Option<(Bson, u64)>, Fault> {
        // A resumed upgrade passes all users that were rewritten: a page of ids bounds each find.
        let Some(last_id) = self.last_of_page(after).await? else { return Ok(None) };
        let page = doc! { "$gt": after, "$lte": &last_id };
        let old = doc! { ATTRIBUTES: { "$exists": false }, ID: page };
        let found = self.find_documents(&self.users, old, self.time_limit()).await?;
        let (mut updates, mut created) = (Vec::new(), HashMap::new());
        for document in &found {
            // Skip damaged documents.
            let Ok(stored) = StoredUser::read(document) else { continue };
            let revision = stored.revision;
            let record = match self.record(stored).await {
                Err(Fault::Damaged(_)) => continue,
                record => record?,
            };
            let tenant = record.user.tenant.clone();
            let since = match created.get(&tenant) {
                Some(since) => *since,
                None => self.tenant_since(&tenant, versions).await?,
            };
            created.insert(tenant, since);
            updates.push(self.rewrite_statement(&record, revision, since, versions).await?);
        }

        let count = self.update_many(USERS, updates).await?;
        Ok(Some((last_id, count)))
    }

    /// Adds derived elements to the next users after `after`, and corrects others that differ from
    /// their users. Returns the last of them and the number of changed users; `None` if there are
    /// no more.
    pub async fn derive_elements(
        &self,
        after: &Bson,
        versions: Versions,
    ) -> Result<Option<(Bson, u64)>, Fault> {
        let next = doc! { ID: { "$gt": after } };
        let options = self.find_options(doc! { ID: 1 }, PAGE_SIZE);
        let found = self.find_documents(&self.users, next, options).await?;
        let Some(last) = found.last() else { return Ok(None) };
        let last_id = bson_id(last)?;
        // Skips damaged documents.
        let changed = found
            .iter()
            .filter_map(|document| derived(document, versions.written_derived()).ok().flatten());
        let update = |(filter, mut set): (Document, Document)| {
            set.insert(EPOCH, versions.epoch);
            doc! { "q": filter, "u": { "$set": set } }
        };
        let updates: Vec<_> = changed.map(update).collect();
        let count = self.update_many(USERS, updates).await?;
        Ok(Some((last_id, count)))
    }

    /// The id of the last user of the page after `after`; `None` if there are no more users.
    async fn last_of_page(&self, after: &Bson) -> Result<Option<Bson>, Fault> {
        let mut options = self.find_options(doc! { ID: 1 }, PAGE_SIZE);
        options.projection = Some(doc! { ID: 1 });
        let next = doc! { ID: { "$gt": after } };
        let ids = self.find_documents(&self.users, next, options).await?;
        ids.last().map(|last| bson_id(last)).transpose()
    }

    async fn rewrite_statement(
        &self,
        record: &Record,
        revision: i64,
        since: Timestamp,
        versions: Versions,
    ) -> Result<Document, Fault> {
        let added = self.names_with(&record.user.tenant, since, &[record]).await?;
        let names = added.map_err(Fault::damaged)?;
        let (policies, derived) = (&Policies::default(), versions.written_derived());
        let tokens = IndexedAttributes { names: &names, policies, derived };
        let mut set = user_document(record, Some(tokens), &Tail::default(), revision + 1);
        set.remove(ID);
        set.insert(EPOCH, versions.epoch);
        let filter = doc! { ID: id_value(record.id()), REVISION: revision };
        Ok(doc! { "q": filter, "u": { "$set": set } })
    }

    /// Records the current time as the begin of all tenants' histories.
    pub async fn begin_histories(&self, versions: Versions) -> Result<(), Fault> {
        let mut after = String::new();
        loop {
            let tenants = self.tenants("", &after, PAGE_SIZE).await?;
            let Some(last) = tenants.last() else { return Ok(()) };
            after = last.name.as_str().to_owned();
            for tenant in tenants {
                while !self.begin_history(&tenant.name, versions).await? {}
            }
        }
    }

    /// Records the begin of a tenant's history. Returns false if the tenant changed concurrently.
    async fn begin_history(&self, name: &Tenant, versions: Versions) -> Result<bool, Fault> {
        let id = doc! { ID: name.as_str() };
        let Some(found) = self.find_document(&self.tenants, id, doc! {}).await? else {
            return Ok(true);
        };
        let (preserved, mut tenant) = (PreservedFields::of_tenant(&found)?, read_tenant(&found)?);
        tenant.policies.history_since = Some(Timestamp::now());
        let document = tenant_document(&tenant, preserved.revision + 1);
        let encoded = raw(&with_epoch(document, versions.epoch, Some(&preserved)))?;
        let unchanged = doc! { ID: name.as_str(), REVISION: preserved.revision };
        let replace = WriteCommand::replace(TENANTS, &unchanged, encoded)?;
        Ok(self.execute(replace).await? == 1)
    }

    /// When a tenant was created. Creates the record of a tenant that never had policies.
    async fn tenant_since(&self, name: &Tenant, versions: Versions) -> Result<Timestamp, Fault> {
        if let Some(tenant) = self.tenant(name).await? {
            return Ok(tenant.since);
        }
        let tenant = TenantRecord::new(name.clone(), Timestamp::now());
        let mut document = tenant_document(&tenant, 0);
        document.insert(EPOCH, Bson::Int32(versions.epoch));
        match self.execute(WriteCommand::insert(TENANTS, [raw(&document)?])).await {
            // A server has created it concurrently.
            Err(fault) if fault.is_duplicate() => {
                let tenant = self.tenant(name).await?;
                Ok(tenant.map_or(Timestamp::default(), |tenant| tenant.since))
            }
            Err(fault) => Err(fault),
            Ok(_) => Ok(tenant.since),
        }
    }
}

/// The user of a document, unchanged, and its fields with the elements that it should have; none if
/// it has them.
fn derived(
    document: &RawDocument,
    derived: Derived,
) -> Result<Option<(Document, Document)>, Fault> {
    let stored = StoredUser::read(document)?;
    let (fields, attributes) = parted(document.get(ATTRIBUTES).map_err(Fault::damaged)?)?;
    let mut array = field_array(&stored.decode_without_attributes()?.user, derived);
    if array == fields {
        return Ok(None);
    }
    array.extend(attributes);
    let unchanged = doc! { ID: id_value(stored.id), REVISION: stored.revision };
    Ok(Some((unchanged, doc! { REVISION: stored.revision + 1, ATTRIBUTES: array })))
}
