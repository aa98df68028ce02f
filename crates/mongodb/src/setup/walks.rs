//! Walks over collections for `store verify`.

use std::future::ready;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use mongodb::options::{FindOptions, ReadConcern};
use mongodb::{ClientSession, Collection, SessionCursor};

use crate::client::error::Fault;
use crate::database::collections::LONG_READ;
use crate::schema::bson::bson_id;
use crate::schema::fields::{ID, TENANT};
use crate::setup::integrity::{BATCH, IntegritySession};
use polynym_directory::{Error, Tenant};
use polynym_identifier::IdentityKey;
use polynym_store_common::integrity::{Sample, Scope};

/// The documents of a walk.
#[derive(Clone, Default)]
pub(super) struct Part {
    filter: Document,
    sample: Option<Sample>,
}

impl Part {
    /// The users of a scope.
    pub(super) fn of_users(scope: &Scope) -> Self {
        let filter = scope.tenant.as_ref().map_or_else(Document::new, users_of);
        Self { filter, sample: scope.sample }
    }

    /// The documents of a scope in a collection by identity keys.
    pub(super) fn of_keys(scope: &Scope) -> Self {
        let filter = scope.tenant.as_ref().map_or_else(Document::new, keys_of);
        Self { filter, sample: scope.sample }
    }

    /// The find of its documents, or of their ids. A walk of all is in the order of the ids, for
    /// which each shard has an index; the users of a tenant are found by another one.
    fn options(&self, ids_only: bool) -> FindOptions {
        let mut options =
            FindOptions::builder().batch_size(BATCH as u32).max_time(LONG_READ).build();
        options.read_concern = Some(ReadConcern::majority());
        options.sort = (!self.filter.contains_key(TENANT)).then(|| doc! { ID: 1 });
        options.projection = ids_only.then(|| doc! { ID: 1 });
        options
    }
}

/// The filter for the users of a tenant.
pub(super) fn users_of(tenant: &Tenant) -> Document {
    doc! { TENANT: tenant.as_str() }
}

/// The filter for the documents of a tenant in a collection by identity keys.
pub(super) fn keys_of(tenant: &Tenant) -> Document {
    let [start, end] = IdentityKey::range(tenant.as_str());
    doc! { ID: { "$gte": start, "$lt": end } }
}

impl IntegritySession {
    /// The documents of a part of a collection.
    pub(super) fn walk<T: Send + 'static>(
        &self,
        collection: &Collection<RawDocumentBuf>,
        part: Part,
        row: fn(&RawDocument) -> T,
    ) -> BoxStream<'_, Result<T, Error>> {
        let batches = self.walk_batches(collection, part, row);
        batches.map_ok(|rows| stream::iter(rows.into_iter().map(Ok))).try_flatten().boxed()
    }

    /// The documents of a part of a collection, in batches. Those of a sample are found by their
    /// ids.
    pub(super) fn walk_batches<T: Send + 'static>(
        &self,
        collection: &Collection<RawDocumentBuf>,
        part: Part,
        row: fn(&RawDocument) -> T,
    ) -> BoxStream<'_, Result<Vec<T>, Error>> {
        let Some(sample) = part.sample else {
            return self.walk_all(collection, part, false, row);
        };
        let ids = self.walk_all(collection, part, true, bson_id);
        let ids = ids.map_ok(|ids| stream::iter(ids.into_iter().map(|id| Ok::<_, Error>(id?))));
        let sampled = ids.try_flatten().try_filter(move |id| ready(is_in(sample, id)));
        let from = collection.clone();
        sampled
            .try_chunks(BATCH)
            .map_err(|error| error.1)
            .and_then(move |ids| {
                let from = from.clone();
                async move {
                    let found = self.find(&from, ids).await?;
                    Ok(found.iter().map(|document| row(document)).collect())
                }
            })
            .boxed()
    }

    /// The documents of a part of a collection, or their ids, in batches.
    fn walk_all<T: Send + 'static>(
        &self,
        collection: &Collection<RawDocumentBuf>,
        part: Part,
        ids_only: bool,
        row: fn(&RawDocument) -> T,
    ) -> BoxStream<'_, Result<Vec<T>, Error>> {
        let collection = collection.clone();
        let walk = async move {
            let mut finds = self.in_order().await?;
            let find = collection.find(part.filter.clone()).with_options(part.options(ids_only));
            let cursor = find.session(&mut finds.session).await.map_err(Fault::from)?;
            let batches =
                stream::try_unfold((finds, cursor), move |(mut finds, mut cursor)| async move {
                    let rows = next_batch(&mut finds.session, &mut cursor, row).await?;
                    self.learn(&finds);
                    Ok::<_, Error>((!rows.is_empty()).then_some((rows, (finds, cursor))))
                });
            Ok::<_, Error>(batches)
        };
        stream::once(walk).try_flatten().boxed()
    }
}

/// The next documents of a cursor; none at its end.
async fn next_batch<T>(
    session: &mut ClientSession,
    cursor: &mut SessionCursor<RawDocumentBuf>,
    row: fn(&RawDocument) -> T,
) -> Result<Vec<T>, Fault> {
    let mut rows = Vec::with_capacity(BATCH);
    while rows.len() < BATCH
        && let Some(document) = cursor.next(session).await
    {
        rows.push(row(&document?));
    }
    Ok(rows)
}

/// Whether the document with this id belongs to a sample.
fn is_in(sample: Sample, id: &Bson) -> bool {
    match id {
        Bson::Binary(id) => sample.has(&id.bytes),
        Bson::String(id) => sample.has(id.as_bytes()),
        id => sample.has(id.to_string().as_bytes()),
    }
}
