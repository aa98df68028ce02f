//! Reads that are no look-ups: claims as they are, tenants, and walks over users.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::{FindOptions, ReadConcern};

use super::Collections;
use super::error::Fault;
use super::schema::{DUE, ID, StoredUser, TENANT, by_id, date, id_value, key_value, read_claim, read_due, read_tenant};
use crate::directory::{Claim, Record, Tenant, TenantRecord, Timestamp};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

impl Collections {
    /// What stands under `keys`, in their order.
    pub async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Fault> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let filter = by_id(keys.iter().map(key_value).collect());
        let mut claims = HashMap::with_capacity(keys.len());
        for document in self.all(&self.identities, filter, self.bounded()).await? {
            let (key, claim) = read_claim(&document)?;
            claims.insert(key.to_owned(), claim);
        }
        Ok(keys.iter().map(|key| claims.get(key.as_str()).cloned()).collect())
    }

    /// The tenant with this name.
    pub async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Fault> {
        let found = self.all(&self.tenants, doc! { ID: name.as_str() }, self.bounded()).await?;
        Ok(found.first().map(|document| read_tenant(document)).transpose()?.map(|(tenant, _)| tenant))
    }

    /// Tenants in the order of their names.
    pub async fn tenants(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<TenantRecord>, Fault> {
        let filter = doc! { ID: { "$gt": after, "$gte": prefix, "$lt": format!("{prefix}{}", char::MAX) } };
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64);
        let found = self.all(&self.tenants, filter, options.max_time(self.timeout).build()).await?;
        found.iter().map(|document| Ok(read_tenant(document)?.0)).collect()
    }

    /// Users of a tenant in the order of their ids. The server looks at those of others to find them, for as long as it
    /// takes.
    pub async fn scan(&self, tenant: &Tenant, after: Option<LocalityId>, limit: usize) -> Result<Vec<Record>, Fault> {
        let mut filter = doc! { TENANT: tenant.as_str() };
        if let Some(after) = after {
            filter.insert(ID, doc! { "$gt": id_value(after) });
        }
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64).build();
        let found = self.all(&self.users, filter, options).await?;
        found.iter().map(|document| StoredUser::read(document)?.decode()).collect()
    }

    /// Users about whom something is to be done by `now`, with their tenants.
    pub async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<(Tenant, LocalityId)>, Fault> {
        let filter = doc! { DUE: { "$lte": date(now) } };
        let options = FindOptions::builder().sort(doc! { DUE: 1 }).limit(limit as i64);
        let options = options.projection(doc! { TENANT: 1 }).max_time(self.timeout).build();
        self.all(&self.users, filter, options).await?.iter().map(|document| read_due(document)).collect()
    }

    fn bounded(&self) -> FindOptions {
        FindOptions::builder().max_time(self.timeout).build()
    }

    /// All documents of a find, as a majority has them.
    pub async fn all(
        &self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        options: FindOptions,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        let find = from.find(filter).with_options(options).read_concern(ReadConcern::majority());
        Ok(find.await?.try_collect().await?)
    }
}
