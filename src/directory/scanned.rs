//! Searches by reading all users of a tenant: the reference for stores, which have indexes.

use locality_uuid::LocalityId;

use super::error::Error;
use super::model::record::Record;
use super::model::tenant::Tenant;
use super::search::{Lead, Position, SearchedUser};
use super::store::{Store, View};

/// Users in one read.
const BATCH: usize = 500;

/// See [`Store::search`].
pub async fn search<S: Store + ?Sized>(
    store: &S,
    tenant: &Tenant,
    lead: &Lead,
    after: Option<&Position>,
    limit: usize,
    view: View,
) -> Result<Vec<SearchedUser>, Error> {
    let mut found: Vec<(Position, Record)> = Vec::new();
    let mut last = None;
    while let Some(batch) = next_batch(store, tenant, &mut last).await? {
        let place = |record: Record| Some((lead.position(&record.user)?, record));
        let is_after = |(position, _): &(Position, Record)| Some(position) > after;
        found.extend(batch.into_iter().filter_map(place).filter(is_after));
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.truncate(limit);
    }
    let view = lead.view(view);
    Ok(found.into_iter().map(|(_, record)| SearchedUser::of(record.user, view)).collect())
}

/// See [`Store::probe`].
pub async fn probe<S: Store + ?Sized>(
    store: &S,
    tenant: &Tenant,
    lead: &Lead,
    limit: usize,
) -> Result<usize, Error> {
    let (mut count, mut last) = (0, None);
    while let Some(batch) = next_batch(store, tenant, &mut last).await? {
        count += batch.iter().filter(|record| lead.position(&record.user).is_some()).count();
        if count >= limit {
            return Ok(limit);
        }
    }
    Ok(count)
}

async fn next_batch<S: Store + ?Sized>(
    store: &S,
    tenant: &Tenant,
    last: &mut Option<LocalityId>,
) -> Result<Option<Vec<Record>>, Error> {
    let batch = store.scan(tenant, *last, BATCH).await?;
    *last = batch.last().map(Record::id);
    Ok(Some(batch).filter(|batch| !batch.is_empty()))
}
