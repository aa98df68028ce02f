//! Finds of documents by their ids. Documents are decoded in the reply's buffer, without a copy.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf};
use mongodb::options::{ReadConcern, SelectionCriteria};
use mongodb::raw_batch_cursor::RawBatch;

use crate::client::error::Fault;
use crate::database::freshness::Key;
use crate::database::ordered::OrderedFinds;
use crate::database::transaction::Transaction;
use crate::schema::bson::by_id;

/// How a find reads: with a read concern from some members, after earlier finds, or in the snapshot
/// of a transaction.
pub enum ReadMode<'t, 'c> {
    Plain { concern: ReadConcern, criteria: SelectionCriteria, time: Duration },
    Ordered { finds: &'t mut OrderedFinds, time: Duration },
    Snapshot(&'t mut Transaction<'c>),
}

/// The reply of a find: at most 16 MiB.
pub struct Reply {
    pub batch: RawBatch,
    /// Whether it has all documents.
    pub is_complete: bool,
}

impl ReadMode<'_, '_> {
    /// Records reads of a snapshot, whose freshness is checked.
    pub fn record_reads(&mut self, keys: impl Iterator<Item = Key>) {
        if let Self::Snapshot(transaction) = self {
            transaction.record_reads(keys);
        }
    }

    /// The documents with these ids, as many as fit in a reply. `projection` has the fields to
    /// read; `None` reads all.
    pub async fn find(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
        projection: Option<Document>,
    ) -> Result<Reply, Fault> {
        // With a batch of exactly this size, the server would keep a cursor open for no more
        // documents.
        let size = ids.len() as u32 + 1;
        let whole = from.find(by_id(ids)).batch_size(size);
        let find = match projection {
            Some(fields) => whole.projection(fields),
            None => whole,
        };
        let received = match self {
            Self::Plain { concern, criteria, time } => {
                let find = find
                    .read_concern(concern.clone())
                    .selection_criteria(criteria.clone())
                    .max_time(*time);
                find.batch().await?.try_next().await?
            }
            Self::Ordered { finds, time } => {
                let find = find.read_concern(ReadConcern::majority()).max_time(*time);
                let session = &mut finds.session;
                let mut cursor = find.session(&mut *session).batch().await?;
                cursor.stream(session).try_next().await?
            }
            Self::Snapshot(transaction) => {
                let find = find.max_time(transaction.time_left());
                let session = &mut transaction.session;
                let mut cursor = find.session(&mut *session).batch().await?;
                cursor.stream(session).try_next().await?
            }
        };
        let batch = received.ok_or_else(|| Fault::damaged("a reply without a batch"))?;
        Ok(Reply { is_complete: is_last(&batch)?, batch })
    }
}

/// Whether the server has closed the cursor.
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
        value
            .map_err(Fault::damaged)?
            .as_document()
            .ok_or_else(|| Fault::damaged("a reply with a value that is not a document"))
    }))
}
