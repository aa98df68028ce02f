//! Finds of documents by their ids, whose replies are read where they lie.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf};
use mongodb::options::{ReadConcern, SelectionCriteria};
use mongodb::raw_batch_cursor::RawBatch;

use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::freshness::Key;
use crate::store::mongo::database::transaction::Transaction;
use crate::store::mongo::schema::bson::by_id;

/// Finds of one kind: how fresh, and from where.
pub enum Finds<'t, 'c> {
    Plain { concern: ReadConcern, criteria: SelectionCriteria, time: Duration },
    Snapshot(&'t mut Transaction<'c>),
}

/// The documents that were found.
pub struct Reply {
    pub batches: Vec<RawBatch>,
    /// Whether all that is there was found; a reply holds 16 MiB.
    pub is_whole: bool,
}

impl Finds<'_, '_> {
    /// Takes note of what was found, where that has to be one moment.
    pub fn note(&mut self, keys: impl Iterator<Item = Key>) {
        if let Self::Snapshot(transaction) = self {
            transaction.note(keys);
        }
    }

    /// The documents with these ids, as many as one reply holds. `projection` has the fields to
    /// read, where that is not all of them.
    pub async fn find(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
        projection: Option<Document>,
    ) -> Result<Reply, Fault> {
        // One more than can come, or the server would keep a cursor open to say that this was all.
        let size = ids.len() as u32 + 1;
        let find = from.find(by_id(ids)).batch_size(size);
        let find = match projection {
            Some(fields) => find.projection(fields),
            None => find,
        };
        let batch = match self {
            Self::Plain { concern, criteria, time } => {
                let find = find
                    .read_concern(concern.clone())
                    .selection_criteria(criteria.clone())
                    .max_time(*time);
                find.batch().await?.try_next().await?
            }
            Self::Snapshot(transaction) => {
                let session = transaction.session();
                let mut cursor = find.session(&mut *session).batch().await?;
                cursor.stream(session).try_next().await?
            }
        };
        let batch = batch.ok_or_else(|| Fault::damaged("a reply without a batch"))?;
        let is_whole = is_last(&batch)?;

        Ok(Reply { batches: vec![batch], is_whole })
    }
}

/// Whether no cursor was left open for more.
fn is_last(batch: &RawBatch) -> Result<bool, Fault> {
    let cursor = batch.as_raw_document().get_document("cursor").map_err(Fault::damaged)?;
    Ok(cursor.get_i64("id").map_err(Fault::damaged)? == 0)
}

/// The documents of a batch.
pub fn documents(
    batch: &RawBatch,
) -> Result<impl Iterator<Item = Result<&RawDocument, Fault>>, Fault> {
    let documents = batch.doc_slices()?.into_iter();
    Ok(documents.map(|value| {
        let value = value.map_err(Fault::damaged)?;
        value
            .as_document()
            .ok_or_else(|| Fault::damaged("a reply with something that is no document"))
    }))
}
