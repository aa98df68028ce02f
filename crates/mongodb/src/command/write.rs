//! Writes of documents.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::raw::{CStr, cstr};
use mongodb::bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;

use crate::client::concern::majority_document;
use crate::client::error::{Cause, Fault};
use crate::command::run::millis;
use crate::schema::bson::{number, raw};
use crate::schema::fields::ID;

/// The limit of documents in a command.
pub const MAX_STATEMENT_DOCUMENTS: usize = 1_000;
/// The limit of their bytes, unless there is one document alone. MongoDB accepts 16 MiB.
const MAX_BYTES: usize = 12 << 20;

/// A write of documents of one collection.
pub struct WriteCommand(RawDocumentBuf);

impl WriteCommand {
    /// Inserts documents, in order.
    pub fn insert(into: &str, documents: impl IntoIterator<Item = RawDocumentBuf>) -> Self {
        Self::new((cstr!("insert"), into), (cstr!("documents"), documents))
    }

    /// Changes the document that a filter matches.
    pub fn update(of: &str, filter: &Document, change: &Document) -> Result<Self, Fault> {
        Ok(Self::updates(of, [rawdoc! { "q": raw(filter)?, "u": raw(change)? }]))
    }

    /// Replaces the document that a filter matches.
    pub fn replace(of: &str, filter: &Document, document: RawDocumentBuf) -> Result<Self, Fault> {
        Ok(Self::updates(of, [rawdoc! { "q": raw(filter)?, "u": document }]))
    }

    /// Replaces or changes the document that a filter matches, or inserts one.
    pub fn upsert(of: &str, filter: &Document, document: RawDocumentBuf) -> Result<Self, Fault> {
        Ok(Self::updates(of, [rawdoc! { "q": raw(filter)?, "u": document, "upsert": true }]))
    }

    /// Sends updates, each with a filter and a change.
    pub fn updates(of: &str, updates: impl IntoIterator<Item = RawDocumentBuf>) -> Self {
        Self::new((cstr!("update"), of), (cstr!("updates"), updates))
    }

    /// Deletes all documents that a filter matches.
    pub fn delete(from: &str, filter: &Document) -> Result<Self, Fault> {
        Self::delete_up_to(from, filter, 0)
    }

    /// Deletes the documents with these ids, each by a statement of its own.
    pub fn delete_each(from: &str, ids: Vec<Bson>) -> Result<Self, Fault> {
        let delete = |id: Bson| Ok(rawdoc! { "q": raw(&doc! { ID: id })?, "limit": 1 });
        let deletes = ids.into_iter().map(delete).collect::<Result<Vec<_>, Fault>>()?;
        Ok(Self::new((cstr!("delete"), from), (cstr!("deletes"), deletes)))
    }

    /// Deletes the document that a filter matches.
    pub fn delete_one(from: &str, filter: &Document) -> Result<Self, Fault> {
        Self::delete_up_to(from, filter, 1)
    }

    /// Deletes as many documents that a filter matches; 0 for all.
    fn delete_up_to(from: &str, filter: &Document, limit: i32) -> Result<Self, Fault> {
        let delete = rawdoc! { "q": raw(filter)?, "limit": limit };
        Ok(Self::new((cstr!("delete"), from), (cstr!("deletes"), [delete])))
    }

    fn new(
        (name, collection): (&CStr, &str),
        (field, items): (&CStr, impl IntoIterator<Item = RawDocumentBuf>),
    ) -> Self {
        let mut command = RawDocumentBuf::new();
        command.append(name, collection);
        command.append(field, items.into_iter().collect::<RawArrayBuf>());
        Self(command)
    }

    /// The command, which MongoDB gives up after `time`.
    pub fn with_limit(self, time: Duration) -> RawDocumentBuf {
        let Self(mut command) = self;
        command.append(cstr!("maxTimeMS"), millis(time));
        command
    }

    /// Sends the write, which MongoDB gives up after `time`. Then it is majority-committed. Returns
    /// the number of documents that it inserted, matched or deleted.
    pub async fn run(self, database: &Database, time: Duration) -> Result<u64, Fault> {
        let mut command = self.with_limit(time);
        command.append(cstr!("writeConcern"), raw(&majority_document())?);
        WriteReply::read(&database.run_raw_command(command).await?).into_count()
    }
}

/// Splits documents or statements into parts, each for one command.
pub fn parts(
    documents: impl IntoIterator<Item = RawDocumentBuf>,
) -> impl Iterator<Item = Vec<RawDocumentBuf>> {
    let (mut parts, mut bytes) = (Vec::<Vec<_>>::new(), 0);
    for document in documents {
        let size = document.as_bytes().len();
        let has_room =
            |part: &&mut Vec<_>| part.len() < MAX_STATEMENT_DOCUMENTS && bytes + size <= MAX_BYTES;
        match parts.last_mut().filter(has_room) {
            Some(part) => {
                part.push(document);
                bytes += size;
            }
            None => {
                parts.push(vec![document]);
                bytes = size;
            }
        }
    }
    parts.into_iter()
}

/// MongoDB's answer to a write.
pub struct WriteReply {
    /// The number of documents that were inserted, matched or deleted.
    count: u64,
    /// The index of the first item that MongoDB refused, and why it did.
    refused: Option<(usize, Fault)>,
}

impl WriteReply {
    pub fn read(reply: &Document) -> Self {
        let field = |document: &Document, name| document.get(name).and_then(number);
        let unsigned = |number: Option<i64>| u64::try_from(number.unwrap_or_default()).unwrap_or(0);
        let errors = reply.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
        let error = errors.iter().find_map(Bson::as_document);
        let concern = reply.get_document("writeConcernError").ok();
        let labels = reply.get_array("errorLabels").map_or(&[][..], Vec::as_slice);
        let is_transient = labels.contains(&Bson::from(TRANSIENT_TRANSACTION_ERROR));
        let refused = error.or(concern).map(|error| {
            let code = field(error, "code").unwrap_or_default() as i32;
            let cause = Cause::of_write(code, is_transient);
            (unsigned(field(error, "index")) as usize, Fault::Driver(cause))
        });
        Self { count: unsigned(field(reply, "n")), refused }
    }

    /// The number of items that MongoDB tried to write, of `all`.
    pub fn attempted(&self, all: usize) -> usize {
        self.refused.as_ref().map_or(all, |(index, _)| index + 1)
    }

    /// The number of documents that were inserted, matched or deleted.
    ///
    /// # Errors
    /// MongoDB refused an item.
    pub fn into_count(self) -> Result<u64, Fault> {
        match self.refused {
            Some((_, fault)) => Err(fault),
            None => Ok(self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_limited_number_of_documents_and_of_bytes() {
        let sizes = |documents: Vec<RawDocumentBuf>| -> Vec<usize> {
            parts(documents).map(|part| part.len()).collect()
        };
        let document = |size| raw(&doc! { "w": "x".repeat(size) }).unwrap();
        assert_eq!(sizes(Vec::new()), [] as [usize; 0]);
        assert_eq!(sizes(vec![document(1); 2_001]), [1_000, 1_000, 1]);
        assert_eq!(sizes(vec![document(5 << 20); 5]), [2, 2, 1]);
        let large = document(15 << 20);
        assert_eq!(sizes(vec![document(1), large, document(1)]), [1, 1, 1]);
    }
}
