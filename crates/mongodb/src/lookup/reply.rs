//! The reply to a find by ids. Documents are decoded in its buffers, without a copy.

use mongodb::bson::{Bson, RawDocument};
use mongodb::raw_batch_cursor::RawBatch;

use crate::client::error::Fault;

/// The most bytes of a reply, as MongoDB has it for one find.
const MAX_BYTES: usize = 16 << 20;

/// The reply of a find: at most 16 MiB, also in parts.
#[derive(Default)]
pub struct Reply {
    batch: Option<RawBatch>,
    /// The batches of other parts.
    others: Vec<RawBatch>,
    /// Whether it lacks documents that did not fit.
    pub is_cut: bool,
    /// The ids for which no shard has answered.
    pub unanswered: Vec<Bson>,
}

impl Reply {
    /// The reply with this batch.
    pub fn of(batch: RawBatch) -> Result<Self, Fault> {
        let is_cut = !is_last(&batch)?;
        Ok(Self { batch: Some(batch), is_cut, ..Self::default() })
    }

    /// No answer for these ids.
    pub fn without(unanswered: Vec<Bson>) -> Self {
        Self { unanswered, ..Self::default() }
    }

    /// Adds the reply to another part of the ids, or cuts it off if it is too large.
    pub fn add(&mut self, part: Self) {
        let has_room = self.bytes() + part.bytes() <= MAX_BYTES;
        if has_room {
            self.others.extend(part.batch);
            self.others.extend(part.others);
        }
        self.is_cut |= part.is_cut || !has_room;
        self.unanswered.extend(part.unanswered);
    }

    fn bytes(&self) -> usize {
        self.batches().map(|batch| batch.as_raw_document().as_bytes().len()).sum()
    }

    fn batches(&self) -> impl Iterator<Item = &RawBatch> {
        self.batch.iter().chain(&self.others)
    }
}

/// Whether the server has closed the cursor.
fn is_last(batch: &RawBatch) -> Result<bool, Fault> {
    let cursor = batch.as_raw_document().get_document("cursor").map_err(Fault::damaged)?;
    Ok(cursor.get_i64("id").map_err(Fault::damaged)? == 0)
}

/// The documents of a reply.
pub fn documents(reply: &Reply) -> impl Iterator<Item = Result<&RawDocument, Fault>> {
    reply.batches().flat_map(|batch| {
        let (documents, fault) = match documents_of(batch) {
            Ok(documents) => (Some(documents), None),
            Err(fault) => (None, Some(Err(fault))),
        };
        documents.into_iter().flatten().chain(fault)
    })
}

fn documents_of(
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
