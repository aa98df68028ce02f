//! Counters of calls: documents of [`USAGE`], one for each tenant, caller and metric, and each
//! period: a day by minutes, 10 days by hours, 40 days by days. The numbers are a tree of two
//! levels, such as hours and minutes, so that an update skips most of them. Periods are short,
//! since a document has an entry for each server that ran in its period.
//!
//! A batch is many updates without a transaction. Each records the number of the batch in its
//! document, and has no effect if it is recorded already, so that a batch can be sent again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use mongodb::bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;
use mongodb::options::ReadConcern;
use xxhash_rust::xxh3::xxh3_128;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::operations::Mongo;
use crate::schema::bson::{bson_id, date, id_value, read_fields, required};
use crate::schema::fields::{
    CALLER, COUNTS, EXPIRES_AT, FLUSHES, ID, METRIC, PERIOD, RESOLUTION, TENANT, USAGE,
};
use polynym_directory::{
    Error, Resolution, Tenant, Timestamp, Usage, UsageBatch, UsageCount, UsagePoint, UsageQuery,
};
use polynym_store_common::operations::Operation;

/// The limit of updates in a command.
const UPDATES_PER_COMMAND: usize = 500;
/// The limit of documents of a tenant that are emptied at once.
const EMPTIED_DOCUMENTS: usize = 500;

/// The layout of the documents of a resolution.
struct Layout {
    /// The intervals of a document.
    all: i64,
    /// The intervals of a part of a document.
    part: i64,
}

const fn layout(resolution: Resolution) -> Layout {
    match resolution {
        Resolution::Minute => Layout { all: 24 * 60, part: 60 },
        Resolution::Hour => Layout { all: 10 * 24, part: 24 },
        Resolution::Day => Layout { all: 40, part: 10 },
    }
}

/// The location of an interval's counter.
struct CounterPath {
    /// The beginning of the period of its document.
    period: Timestamp,
    part: i64,
    within: i64,
}

fn counter_path(resolution: Resolution, time: Timestamp) -> CounterPath {
    let (Layout { all, part }, length) = (layout(resolution), millis(resolution));
    let interval = time.as_millis().div_euclid(length);
    let (period, within) = (interval.div_euclid(all), interval.rem_euclid(all));
    let period = Timestamp::from_millis(period * all * length);
    CounterPath { period, part: within / part, within: within % part }
}

fn millis(resolution: Resolution) -> i64 {
    resolution.length().as_millis() as i64
}

#[async_trait]
impl Usage for Mongo {
    async fn add_usage(&self, batch: Arc<UsageBatch>) -> Result<(), Error> {
        self.write(
            Operation::Usage,
            |collections| async move { collections.add_usage(&batch).await },
        )
        .await
    }

    async fn usage(&self, query: UsageQuery, limit: usize) -> Result<Vec<UsagePoint>, Error> {
        self.read(
            Operation::Usage,
            |collections| async move { collections.usage(&query, limit).await },
        )
        .await
    }

    async fn remove_usage(&self, tenant: &Tenant) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(Operation::Usage, |collections| async move {
            collections.remove_usage(&tenant).await
        })
        .await
    }
}

impl Collections {
    /// See [`Usage::add_usage`].
    pub async fn add_usage(&self, batch: &UsageBatch) -> Result<(), Fault> {
        let updates = batch
            .counts
            .iter()
            .flat_map(|count| Resolution::ALL.map(|resolution| update(batch, count, resolution)));
        let updates: Vec<_> = updates.collect();
        for updates in updates.chunks(UPDATES_PER_COMMAND) {
            let mut refused = self.update_usage(updates).await?;
            // Another server may have created the document; or the document has the batch, and the
            // update has no effect.
            refused.iter_mut().for_each(|update| {
                update.insert("upsert", false);
            });
            if !refused.is_empty() && !self.update_usage(&refused).await?.is_empty() {
                return Err(DriverError::custom("counters were not stored").into());
            }
        }
        Ok(())
    }

    /// Sends updates. Returns those whose documents exist, but do not match their filters.
    async fn update_usage(&self, updates: &[Document]) -> Result<Vec<Document>, Fault> {
        let refused = self.update_unordered(USAGE, updates.to_vec()).await?;
        Ok(refused.into_iter().filter_map(|n| updates.get(n).cloned()).collect())
    }

    /// See [`Usage::usage`].
    pub async fn usage(&self, query: &UsageQuery, limit: usize) -> Result<Vec<UsagePoint>, Fault> {
        let resolution = query.resolution;
        let first = counter_path(resolution, query.from).period;
        let filter = doc! {
            TENANT: query.tenant.as_str(),
            RESOLUTION: resolution as i32,
            PERIOD: { "$gte": date(first), "$lt": date(query.to) },
        };
        let collection = self.collection(USAGE);
        let find = collection.find(filter).projection(doc! { FLUSHES: false });
        let with_concern = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
        let mut cursor = with_concern.await?;

        let mut points = Vec::new();
        while let Some(document) = cursor.try_next().await? {
            read(&document, query, &mut points)?;
            if points.len() >= limit {
                points.truncate(limit);
                break;
            }
        }
        Ok(points)
    }
}

impl Collections {
    /// See [`Usage::remove_usage`]. Empties the documents: a later tenant with the same name may
    /// count in them, and servers need no permission to remove them.
    pub async fn remove_usage(&self, tenant: &Tenant) -> Result<bool, Fault> {
        let mut options = self.time_limit();
        options.limit = Some(EMPTIED_DOCUMENTS as i64);
        options.projection = Some(doc! { ID: 1 });
        let counted = doc! { TENANT: tenant.as_str(), COUNTS: { "$ne": {} } };
        let documents = self.find_documents(&self.collection(USAGE), counted, options).await?;
        let empty = |document: &RawDocumentBuf| {
            let change = doc! { "$set": { COUNTS: {} } };
            Ok(doc! { "q": { ID: bson_id(document)? }, "u": change })
        };
        let updates: Vec<_> = documents.iter().map(empty).collect::<Result<_, Fault>>()?;
        let count = updates.len();
        if count > 0 {
            self.update_unordered(USAGE, updates).await?;
        }
        Ok(count == EMPTIED_DOCUMENTS)
    }
}

/// The update of a counter.
fn update(batch: &UsageBatch, count: &UsageCount, resolution: Resolution) -> Document {
    let UsageCount { tenant, caller, metric, count } = count;
    let CounterPath { period, part, within } = counter_path(resolution, batch.time);
    let kind = resolution as i32;
    let name = format!("{tenant}\0{caller}\0{metric}\0{kind}\0{}", period.as_millis());
    let id = xxh3_128(name.as_bytes()).to_be_bytes().into();
    let flush = format!("{FLUSHES}.{}", batch.server);
    let number = batch.number as i64;
    let mut first = doc! {
        TENANT: tenant.as_str(),
        CALLER: caller,
        METRIC: metric,
        RESOLUTION: kind,
        PERIOD: date(period),
    };
    if let Some(retention) = resolution.retention() {
        let length = Duration::from_millis((layout(resolution).all * millis(resolution)) as u64);
        first.insert(EXPIRES_AT, date(period.plus(length).plus(retention)));
    }
    doc! {
        "q": { ID: id_value(id), flush.as_str(): { "$not": { "$gte": number } } },
        "u": {
            "$inc": { format!("{COUNTS}.{part}.{within}"): *count as i64 },
            "$set": { flush: number },
            "$setOnInsert": first,
        },
        "upsert": true,
    }
}

/// Adds the counters of a document that match the query.
fn read(
    document: &RawDocument,
    query: &UsageQuery,
    points: &mut Vec<UsagePoint>,
) -> Result<(), Fault> {
    let [caller, metric, period, counts] = read_fields(document, [CALLER, METRIC, PERIOD, COUNTS])?;
    let caller = required(CALLER, caller, RawBsonRef::as_str)?;
    let metric = required(METRIC, metric, RawBsonRef::as_str)?;
    if !query.wants(caller, metric) {
        return Ok(());
    }
    let period = required(PERIOD, period, RawBsonRef::as_datetime)?.timestamp_millis();
    let counts = required(COUNTS, counts, RawBsonRef::as_document)?;
    for part in counts {
        let (part, within) = part.map_err(Fault::damaged)?;
        let part: i64 = part.as_str().parse().map_err(Fault::damaged)?;
        for count in required(COUNTS, Some(within), RawBsonRef::as_document)? {
            let (within, count) = count.map_err(Fault::damaged)?;
            let within: i64 = within.as_str().parse().map_err(Fault::damaged)?;
            let count = required(COUNTS, Some(count), RawBsonRef::as_i64)?;
            let interval = part * layout(query.resolution).part + within;
            let time = Timestamp::from_millis(period + interval * millis(query.resolution));
            if query.covers(time) {
                let (metric, caller) = (metric.to_owned(), caller.to_owned());
                points.push(UsagePoint { metric, caller, time, count: count as u64 });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interval_has_a_path_of_its_own() {
        // 2026-11-25T14:37:59Z.
        let time = Timestamp::from_millis(1_795_617_479_000);
        let CounterPath { period, part, within } = counter_path(Resolution::Minute, time);
        assert_eq!((period, part, within), (Resolution::Day.floor(time), 14, 37));
        for resolution in Resolution::ALL {
            let CounterPath { period, part, within } = counter_path(resolution, time);
            let interval = part * layout(resolution).part + within;
            let begin = period.as_millis() + interval * millis(resolution);
            assert_eq!(begin, resolution.floor(time).as_millis());
        }
    }
}
