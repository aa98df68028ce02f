//! Finds of documents by their ids, outside sessions.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::action::Find;
use mongodb::bson::{Bson, Document, RawDocumentBuf};
use mongodb::options::{ReadConcern, SelectionCriteria};

use crate::client::error::Fault;
use crate::lookup::reply::Reply;
use crate::schema::bson::by_id;

/// The documents and fields that a find reads.
pub struct Query<'q> {
    pub from: &'q Collection<RawDocumentBuf>,
    /// Makes the ids of the documents: once, unless the find is late.
    pub ids: &'q (dyn Fn() -> Vec<Bson> + Sync),
    /// The fields to read; none of them reads all.
    pub fields: &'static [&'static str],
}

/// The way a plain find reads.
#[derive(Clone)]
pub struct PlainFind {
    pub concern: ReadConcern,
    pub criteria: SelectionCriteria,
    pub time: Duration,
}

impl PlainFind {
    /// The documents with these ids, as many as fit in a reply.
    pub async fn send(
        self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
        fields: &'static [&'static str],
    ) -> Result<Reply, Fault> {
        let find = find(from, ids, fields)
            .read_concern(self.concern)
            .selection_criteria(self.criteria)
            .max_time(self.time);
        let received = find.batch().await?.try_next().await?;
        Reply::of(received.ok_or_else(|| Fault::damaged(NO_BATCH))?)
    }
}

/// The fault of a reply without a batch.
pub const NO_BATCH: &str = "a reply without a batch";

/// A find of the documents with these ids. With a batch of exactly their number, the server would
/// keep a cursor open for no more documents.
pub fn find<'a>(
    from: &'a Collection<RawDocumentBuf>,
    ids: Vec<Bson>,
    fields: &[&str],
) -> Find<'a, RawDocumentBuf> {
    let size = ids.len() as u32 + 1;
    let find = from.find(by_id(ids)).batch_size(size);
    if fields.is_empty() {
        return find;
    }
    let projection: Document =
        fields.iter().map(|field| ((*field).to_owned(), Bson::Int32(1))).collect();
    find.projection(projection)
}
