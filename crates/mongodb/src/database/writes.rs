//! Writes as commands with a time limit. The driver's own writes have none, so that a shard that
//! hangs would keep their connections.

use std::time::Duration;

use mongodb::bson::raw::{CStr, cstr};
use mongodb::bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, rawdoc};
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;

use crate::client::concern::majority_document;
use crate::client::error::{Cause, Fault};
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::schema::bson::{number, raw};

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
    fn with_limit(self, time: Duration) -> RawDocumentBuf {
        let Self(mut command) = self;
        // Zero would be no limit.
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1);
        command.append(cstr!("maxTimeMS"), millis);
        command
    }
}

/// MongoDB's answer to a write.
pub struct WriteReply {
    /// The number of documents that were inserted, matched or deleted.
    count: u64,
    /// The index of the first item that MongoDB refused, and why it did.
    refused: Option<(usize, Fault)>,
}

impl WriteReply {
    fn read(reply: &Document) -> Self {
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

impl Transaction<'_> {
    /// Sends a write within the time that the transaction has left.
    pub async fn send(&mut self, command: WriteCommand) -> Result<WriteReply, Fault> {
        let command = command.with_limit(self.time_left());
        let run = self.collections.database.run_raw_command(command);
        Ok(WriteReply::read(&run.session(&mut self.session).await?))
    }

    /// Sends a write. Returns the number of documents that it inserted, matched or deleted.
    pub async fn execute(&mut self, command: WriteCommand) -> Result<u64, Fault> {
        self.send(command).await?.into_count()
    }
}

impl Collections {
    /// Sends a write, which is then majority-committed. Returns the number of documents that it
    /// inserted, matched or deleted.
    pub async fn execute(&self, command: WriteCommand) -> Result<u64, Fault> {
        let mut command = command.with_limit(self.timeout);
        command.append(cstr!("writeConcern"), raw(&majority_document())?);
        WriteReply::read(&self.database.run_raw_command(command).await?).into_count()
    }
}
