//! Reads of claims and tenants, and scans of users.

use std::collections::HashMap;

use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::{FindOptions, Hint};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::ordered::OrderedFinds;
use crate::schema::bson::{by_id, date, id_of, id_value, key_of, key_value};
use crate::schema::claim::read_claim;
use crate::schema::fields::{EXPIRES_AT, HOLD, ID, TENANT, USER};
use crate::schema::tenant::read_tenant;
use crate::schema::user::{StoredUser, read_expired};
use crate::search::user_names::UserNames;
use polynym_directory::{
    Claim, ExpiredUser, Hold, Record, Scanned, Tenant, TenantRecord, Timestamp,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::unreadable::{Kind, readable};

impl Collections {
    /// The claims of `keys`, in their order.
    pub async fn claims(
        &self,
        finds: &mut OrderedFinds,
        keys: &[IdentityKey],
    ) -> Result<Vec<Option<Claim>>, Fault> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let filter = by_id(keys.iter().map(key_value).collect());
        let mut claims = HashMap::with_capacity(keys.len());
        for document in finds.find_documents(&self.identities, filter, self.time_limit()).await? {
            let (key, claim) = read_claim(&document)?;
            claims.insert(key.to_owned(), claim);
        }
        Ok(keys.iter().map(|key| claims.get(key.as_str()).cloned()).collect())
    }

    /// The tenant with this name.
    pub async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Fault> {
        let by_id = doc! { ID: name.as_str() };
        let document = self.find_document(&self.tenants, by_id, doc! {}).await?;
        document.as_deref().map(read_tenant).transpose()
    }

    #[cfg(feature = "test-entity")]
    pub async fn counter(&self, name: &str) -> Result<u64, Fault> {
        let meta = self.collection(crate::schema::fields::META);
        let counter = meta.find_one(doc! { ID: name }).await?;
        Ok(counter.map_or(0, |counter| counter.get_i64("n").unwrap_or_default() as u64))
    }

    /// Tenants in the order of their names.
    pub async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Fault> {
        let (mut tenants, mut after) = (Vec::new(), after.to_owned());
        loop {
            let end = format!("{prefix}{}", char::MAX);
            let filter = doc! { ID: { "$gt": &after, "$gte": prefix, "$lt": end } };
            let rest = limit - tenants.len();
            let options = self.find_options(doc! { ID: 1 }, rest);
            let found = self.find_documents(&self.tenants, filter, options).await?;
            let read = |document: &RawDocumentBuf| readable(Kind::Tenant, read_tenant(document));
            tenants.extend(found.iter().filter_map(read));
            let Some(last) = found.last().filter(|_| found.len() == rest) else {
                return Ok(tenants);
            };
            if tenants.len() == limit {
                return Ok(tenants);
            }
            after = key_of(last)?.to_owned();
        }
    }

    /// Keys of a tenant with a claim.
    pub async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Fault> {
        let [first, end] = IdentityKey::range(tenant.as_str());
        let filter = doc! { ID: { "$gte": first, "$lt": end } };
        let options = FindOptions::builder().limit(limit as i64).max_time(self.timeout).build();
        let found = self.find_documents(&self.identities, filter, options).await?;
        let key = |document: &RawDocumentBuf| Ok(key_of(document)?.to_owned());
        let keys: Vec<String> = found.iter().map(key).collect::<Result<_, Fault>>()?;
        Ok(keys.into_iter().filter_map(IdentityKey::from_stored).collect())
    }

    /// Holds of a tenant on keys whose owner was purged, in the order of their keys. The server may
    /// read many claims with an owner, so the time limit is long.
    pub async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Fault> {
        let (filter, options) = ownerless_holds_of(tenant, after.as_ref(), limit);
        Ok(read_holds(&self.find_documents(&self.identities, filter, options).await?))
    }

    /// Users of a tenant in the order of their ids. The server may read many users of other
    /// tenants, so the time limit is long.
    pub async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Scanned<Record>, Fault> {
        let (filter, options) = users_of(tenant, after, limit);
        let found = self.find_documents(&self.users, filter, options).await?;
        self.scanned(&found, limit, |names, user| names.record(&user)).await
    }

    /// The users of documents, each converted by `read`. There are more if there are `limit` of
    /// them.
    pub async fn scanned<T>(
        &self,
        found: &[RawDocumentBuf],
        limit: usize,
        read: impl Fn(&UserNames, StoredUser) -> Result<T, Fault>,
    ) -> Result<Scanned<T>, Fault> {
        let stored: Vec<_> = found.iter().map(|document| StoredUser::read(document)).collect();
        let (names, read_names) = self.known_names_of(stored.iter().flatten()).await;
        read_names?;
        let mut scanned = Scanned::default();
        for (document, stored) in found.iter().zip(stored) {
            let (id, user) = (id_of(document)?, stored.and_then(|stored| read(&names, stored)));
            scanned.push(id, readable(Kind::User(id), user));
        }
        let last = found.last().filter(|_| found.len() == limit);
        scanned.next = last.map(|last| id_of(last)).transpose()?;
        Ok(scanned)
    }

    /// Users whose expiry is due at `now`, in the order of their positions.
    pub async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Fault> {
        let (mut found, mut times) = (Vec::new(), doc! { "$lte": date(now) });
        if let Some((time, id)) = after {
            found = self.due_at(time, Some(id), limit).await?;
            times.insert("$gt", date(time));
        }

        let remaining = limit.saturating_sub(found.len());
        if remaining == 0 {
            return Ok(found);
        }

        let (mut later, is_full) =
            self.find_expired(doc! { EXPIRES_AT: times }, EXPIRES_AT, remaining).await?;
        // The index has no order within one time: the limit may have cut off users of the last
        // time.
        if let Some(last) = later.last().map(|user| user.time).filter(|_| is_full) {
            later.retain(|user| user.time < last);
            let rest = self.due_at(last, None, remaining - later.len()).await?;
            later.extend(rest);
        }

        later.sort_unstable_by_key(ExpiredUser::position);
        found.extend(later);
        Ok(found)
    }

    /// Users that are due at exactly `time`, after `after`, in the order of their ids.
    async fn due_at(
        &self,
        time: Timestamp,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Fault> {
        let mut filter = doc! { EXPIRES_AT: date(time) };
        if let Some(after) = after {
            filter.insert(ID, doc! { "$gt": id_value(after) });
        }
        Ok(self.find_expired(filter, ID, limit).await?.0)
    }

    /// Users that are due, in the order of a field, and whether there may be more. Skips documents
    /// that are not users.
    async fn find_expired(
        &self,
        filter: Document,
        order: &str,
        limit: usize,
    ) -> Result<(Vec<ExpiredUser>, bool), Fault> {
        let mut options = self.find_options(doc! { order: 1 }, limit);
        options.projection = Some(doc! { TENANT: 1, EXPIRES_AT: 1 });
        options.hint = Some(Hint::Keys(doc! { EXPIRES_AT: 1 }));
        let found = self.find_documents(&self.users, filter, options).await?;
        Ok((
            found.iter().filter_map(|document| read_expired(document).ok()).collect(),
            found.len() == limit,
        ))
    }
}

/// The find for users of a tenant in the order of their ids.
pub fn users_of(
    tenant: &Tenant,
    after: Option<LocalityId>,
    limit: usize,
) -> (Document, FindOptions) {
    let mut filter = doc! { TENANT: tenant.as_str() };
    if let Some(after) = after {
        filter.insert(ID, doc! { "$gt": id_value(after) });
    }
    let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64);
    (filter, options.batch_size(limit as u32).build())
}

/// The find for holds of a tenant without an owner, in the order of their keys.
pub fn ownerless_holds_of(
    tenant: &Tenant,
    after: Option<&IdentityKey>,
    limit: usize,
) -> (Document, FindOptions) {
    let [first, end] = IdentityKey::range(tenant.as_str());
    let mut keys = doc! { "$gte": first, "$lt": end };
    if let Some(after) = after {
        keys.insert("$gt", after.as_str());
    }
    let filter = doc! { ID: keys, HOLD: { "$exists": true }, USER: { "$exists": false } };
    (filter, FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64).build())
}

/// The holds of claims.
pub fn read_holds(claims: &[RawDocumentBuf]) -> Vec<Hold> {
    let mut holds = Vec::new();
    for document in claims {
        let Some((key, claim)) = readable(Kind::Claim, read_claim(document)) else { continue };
        let key = IdentityKey::from_stored(key.to_owned());
        holds.extend(key.and_then(|key| Hold::from_claim(&key, &claim)));
    }
    holds
}
