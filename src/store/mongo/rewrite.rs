//! Users of an older schema, whose attributes stand in their wire form, in the form of the present
//! one. Each is rewritten unless it changes meanwhile: then a server has done so.

use std::collections::HashMap;

use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::options::{Acknowledgment, FindOptions, WriteConcern};

use super::attributes::ATTRIBUTES;
use super::collections::Collections;
use super::error::Fault;
use super::preserved::{PreservedFields, stamped};
use super::schema::{
    EPOCH, ID, REVISION, StoredUser, TENANTS, USERS, id_value, read_tenant, tenant_document,
    user_document,
};
use super::tail::Tail;
use super::transaction::raw;
use super::versions::Versions;
use crate::directory::model::policies::Policies;
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::store::searched::IndexedAttributes;

/// Users in one step.
const PAGE: i64 = 500;

impl Collections {
    /// Rewrites the next users after `after` that still have the form of an older schema. Returns
    /// the last one, and how many were rewritten; none when all are done.
    pub async fn rewrite_users(
        &self,
        after: &Bson,
        versions: Versions,
    ) -> Result<Option<(Bson, usize)>, Fault> {
        let old = doc! { ATTRIBUTES: { "$exists": false }, ID: { "$gt": after } };
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(PAGE);
        let found = self.all(&self.users, old, options.max_time(self.timeout).build()).await?;
        let Some(last) = found.last() else { return Ok(None) };
        let last = last.get(ID).map_err(Fault::damaged)?;
        let last = last.and_then(|id| Bson::try_from(id).ok()).unwrap_or(Bson::MaxKey);
        let (mut updates, mut created) = (Vec::new(), HashMap::new());
        for document in &found {
            // A damaged document is the fault of its own user.
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
            updates.push(self.update_of(&record, revision, since, versions).await?);
        }

        let count = updates.len();
        if count > 0 {
            let majority =
                WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
            let concern = mongodb::bson::serialize_to_bson(&majority).map_err(Fault::damaged)?;
            let command = doc! {
                "update": USERS, "updates": updates, "ordered": false, "writeConcern": concern,
            };
            let reply = self.database.run_command(command).await?;
            if reply.contains_key("writeErrors") {
                return Err(Fault::damaged("users that MongoDB does not take"));
            }
        }
        Ok(Some((last, count)))
    }

    async fn update_of(
        &self,
        record: &Record,
        revision: i64,
        since: Timestamp,
        versions: Versions,
    ) -> Result<Document, Fault> {
        let names = self.names_with(&record.user.tenant, since, &[record]).await?;
        let names = names.map_err(Fault::damaged)?;
        let tokens = IndexedAttributes { names: &names, policies: &Policies::default() };
        let mut set = user_document(record, Some(tokens), &Tail::default(), revision + 1);
        set.remove(ID);
        set.insert(EPOCH, versions.epoch);
        let filter = doc! { ID: id_value(record.id()), REVISION: revision };
        Ok(doc! { "q": filter, "u": { "$set": set } })
    }

    /// Has the histories of all tenants begin now.
    pub async fn begin_histories(&self, versions: Versions) -> Result<(), Fault> {
        let mut after = String::new();
        loop {
            let tenants = self.tenants("", &after, PAGE as usize).await?;
            let Some(last) = tenants.last() else { return Ok(()) };
            after = last.name.as_str().to_owned();
            for tenant in tenants {
                while !self.begin_history(&tenant.name, versions).await? {}
            }
        }
    }

    /// Returns whether it was done: another program may have changed the tenant meanwhile.
    async fn begin_history(&self, name: &Tenant, versions: Versions) -> Result<bool, Fault> {
        let tenants = self.database.collection::<RawDocumentBuf>(TENANTS);
        let id = doc! { ID: name.as_str() };
        let Some(found) = tenants.find_one(id.clone()).await? else { return Ok(true) };
        let (kept, mut tenant) = (PreservedFields::of_tenant(&found)?, read_tenant(&found)?);
        tenant.policies.history_since = Some(Timestamp::now());
        let document = tenant_document(&tenant, kept.revision + 1);
        let document = raw(&stamped(document, versions.epoch, Some(&kept)))?;
        let unchanged = doc! { ID: name.as_str(), REVISION: kept.revision };
        let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let replaced = tenants.replace_one(unchanged, document).write_concern(majority).await?;
        Ok(replaced.matched_count == 1)
    }

    /// When a tenant was created. One without a record, which was never given policies, gets one.
    async fn tenant_since(&self, name: &Tenant, versions: Versions) -> Result<Timestamp, Fault> {
        if let Some(tenant) = self.tenant(name).await? {
            return Ok(tenant.since);
        }
        let tenant = TenantRecord::new(name.clone(), Timestamp::now());
        let mut document = tenant_document(&tenant, 0);
        document.insert(EPOCH, Bson::Int32(versions.epoch));
        let tenants = self.database.collection::<Document>(TENANTS);
        let inserted = tenants.insert_one(document).await.map_err(Fault::from);
        match inserted {
            // A server has made it meanwhile.
            Err(fault) if fault.is_duplicate() => {
                let tenant = self.tenant(name).await?;
                Ok(tenant.map_or(Timestamp::default(), |tenant| tenant.since))
            }
            Err(fault) => Err(fault),
            Ok(_) => Ok(tenant.since),
        }
    }
}
