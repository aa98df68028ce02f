//! The check of bulk changes: their tenants exist, their documents have the states and times by
//! which servers find them, and their lists are complete.

use std::collections::HashSet;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use mongodb::bson::{Bson, RawDocument, RawDocumentBuf, doc};
use tokio::time::Instant;

use crate::bulk_changes::{
    is_filed_under_own, list_of, read_batch_key, read_change, read_key, read_users, revision,
};
use crate::client::backoff::retry_transient;
use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::commit::commit;
use crate::database::freshness::Freshness;
use crate::database::transaction::Transaction;
use crate::deliveries::{is_of_deliveries, is_readable};
use crate::schema::bson::id_text;
use crate::schema::fields::{BULK, ID};
use crate::setup::integrity::IntegritySession;
use crate::setup::walks::Part;
use polynym_directory::{BulkChange, Error};
use polynym_store_common::integrity::{BulkFault, BulkKey};

/// A document among the bulk changes.
enum Row {
    /// The count of a tenant, or a delivery.
    Count,
    /// A document, by its id as text, that is not the bulk change of its id.
    Unreadable(String),
    /// The first batch of the list of a bulk change.
    List(BulkKey),
    /// A bulk change.
    Change {
        key: BulkKey,
        /// Whether it is stored under its own state and time, and has no list.
        is_sound: bool,
    },
}

impl Row {
    fn read(document: &RawDocument) -> Self {
        if document.get_str(ID).is_ok_and(|id| read_key(id).is_ok_and(|(_, id)| id.is_empty())) {
            return Self::Count;
        }
        if document.get_str(ID).is_ok_and(is_of_deliveries) {
            return match is_readable(document) {
                true => Self::Count,
                false => Self::Unreadable(id_text(document)),
            };
        }
        if read_users(document).is_ok() {
            return Self::of_list(document).unwrap_or(Self::Count);
        }
        match read_filed(document) {
            Ok((change, is_filed)) => Self::Change {
                key: BulkKey::new((change.tenant.as_str(), &change.id)),
                is_sound: is_filed && change.list.is_none(),
            },
            Err(_) => Self::Unreadable(id_text(document)),
        }
    }

    /// The row of the first batch of a list.
    fn of_list(document: &RawDocument) -> Option<Self> {
        let (key, batch) = read_batch_key(document.get_str(ID).ok()?)?;
        (batch == 0).then(|| Self::List(BulkKey::new(key)))
    }

    fn tenant(&self) -> Option<&str> {
        match self {
            Self::Change { key, .. } => Some(&key.tenant),
            Self::Count | Self::List(_) | Self::Unreadable(_) => None,
        }
    }
}

/// A bulk change, and whether it is stored under its own state and time.
fn read_filed(document: &RawDocument) -> Result<(BulkChange, bool), Fault> {
    let change = read_change(document)?;
    revision(document)?;
    let is_filed = is_filed_under_own(document, &change)?;
    Ok((change, is_filed))
}

impl IntegritySession {
    /// The faults of all bulk changes.
    pub(super) fn all_bulk_faults(&self) -> BoxStream<'_, Result<Option<BulkFault>, Error>> {
        let bulk = self.collections.collection(BULK);
        let rows = self.walk_batches(&bulk, Part::default(), Row::read);
        let faults = rows.and_then(|rows| self.faults_of(rows));
        faults.map_ok(|faults| stream::iter(faults.into_iter().map(Ok))).try_flatten().boxed()
    }

    async fn faults_of(&self, rows: Vec<Row>) -> Result<Vec<Option<BulkFault>>, Error> {
        let names: HashSet<_> = rows.iter().filter_map(Row::tenant).collect();
        let names = names.into_iter().map(|name| Bson::String(name.to_owned())).collect();
        let tenants = self.find(&self.collections.tenants, names).await?;
        let tenants: HashSet<_> = tenants.iter().map(|tenant| id_text(tenant)).collect();
        let mut faults = Vec::with_capacity(rows.len());
        for row in rows {
            faults.push(match row {
                Row::Count => None,
                Row::Unreadable(id) => Some(BulkFault::Unreadable(id)),
                Row::List(key) => {
                    let fault = self.bulk_fault(&key).await?;
                    fault.filter(|fault| matches!(fault, BulkFault::StrayUsers(_)))
                }
                Row::Change { key, is_sound } if is_sound && tenants.contains(&key.tenant) => None,
                Row::Change { key, .. } => self.bulk_fault(&key).await?,
            });
        }
        Ok(faults)
    }

    /// The fault of a bulk change in one snapshot.
    async fn bulk_fault(&self, key: &BulkKey) -> Result<Option<BulkFault>, Fault> {
        let deadline = Instant::now() + self.collections.timeout;
        let attempt = || async {
            let mut transaction =
                Transaction::begin(&self.collections, &Freshness::default(), deadline).await?;
            let found = transaction.bulk_fault(key).await;
            transaction.abort().await;
            Ok(found?.map(|(fault, _)| fault))
        };
        retry_transient(deadline, attempt).await
    }

    /// Repairs bulk changes, each in one transaction, if they still have these faults.
    pub(super) async fn repair_each_bulk_change(&self, faults: &[BulkFault]) -> Result<(), Fault> {
        for fault in faults {
            let deadline = Instant::now() + self.collections.timeout;
            retry_transient(deadline, || self.repair_bulk_change(fault, deadline)).await?;
        }
        Ok(())
    }

    async fn repair_bulk_change(&self, fault: &BulkFault, deadline: Instant) -> Result<(), Fault> {
        let versions = self.collections.version_guard.versions()?;
        let mut transaction =
            Transaction::begin(&self.collections, &Freshness::default(), deadline)
                .await?
                .with_versions(versions);
        match transaction.repair_bulk_change(fault).await {
            Ok(true) => commit(transaction, deadline).await.map(drop),
            outcome => {
                transaction.abort().await;
                outcome.map(drop)
            }
        }
    }
}

impl Transaction<'_> {
    /// The fault of a bulk change, and its document.
    async fn bulk_fault(
        &mut self,
        key: &BulkKey,
    ) -> Result<Option<(BulkFault, RawDocumentBuf)>, Fault> {
        let bulk = self.collections.collection(BULK);
        let Some(document) = self.find_one(&bulk, doc! { ID: key.to_string() }).await? else {
            let list = self.find_one(&bulk, list_of(&key.to_string())).await?;
            return Ok(list.map(|first| (BulkFault::StrayUsers(key.clone()), first)));
        };
        let Ok((change, is_filed)) = read_filed(&document) else {
            return Ok(Some((BulkFault::Unreadable(key.to_string()), document)));
        };
        let tenant = self.find_one(&self.collections.tenants, doc! { ID: &key.tenant }).await?;
        Ok(match tenant {
            None => Some((BulkFault::Tenantless(key.clone()), document)),
            Some(_) if !is_filed => Some((BulkFault::Unscheduled(key.clone()), document)),
            Some(_) => match change.list {
                Some(list) if self.count_listed(key).await? != list.users => {
                    Some((BulkFault::LostUsers(key.clone()), document))
                }
                _ => None,
            },
        })
    }

    /// The number of users in the stored list of a bulk change.
    async fn count_listed(&mut self, key: &BulkKey) -> Result<u64, Fault> {
        let bulk = self.collections.collection(BULK);
        let batches = self.find_documents(&bulk, list_of(&key.to_string()), None).await?;
        let count =
            |batch: &RawDocumentBuf| read_users(batch).map_or(0, |users| users.len() as u64);
        Ok(batches.iter().map(count).sum())
    }

    /// Repairs a bulk change that still has this fault. Returns whether it wrote.
    async fn repair_bulk_change(&mut self, fault: &BulkFault) -> Result<bool, Fault> {
        let (BulkFault::Tenantless(key) | BulkFault::Unscheduled(key) | BulkFault::StrayUsers(key)) =
            fault
        else {
            return Ok(false);
        };
        match self.bulk_fault(key).await? {
            Some((present, document)) if present == *fault => match present {
                BulkFault::Tenantless(_) => {
                    let by_id = doc! { ID: key.to_string() };
                    self.execute(WriteCommand::delete_one(BULK, &by_id)?).await?;
                    self.remove_bulk_users(&key.to_string()).await?;
                }
                BulkFault::StrayUsers(_) => self.remove_bulk_users(&key.to_string()).await?,
                _ => self.refile_bulk_change(&document).await?,
            },
            _ => return Ok(false),
        }
        Ok(true)
    }
}
