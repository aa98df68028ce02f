//! Writes of many documents in one command, without a transaction.

use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};
use mongodb::error::Error as DriverError;

use crate::client::concern::majority_document;
use crate::client::error::Fault;
use crate::command::run::millis;
use crate::command::write::parts;
use crate::database::collections::Collections;
use crate::schema::bson::{number, raw};

/// DuplicateKey: the document of an upsert exists, but does not match its filter.
const DUPLICATE: i64 = 11_000;

impl Collections {
    /// Sends updates, which are then majority-committed. Returns the indices of upserts whose
    /// documents exist, but do not match their filters.
    pub async fn update_unordered(
        &self,
        collection: &str,
        updates: Vec<Document>,
    ) -> Result<Vec<usize>, Fault> {
        self.write_unordered(raw(&doc! { "update": collection, "updates": updates })?).await
    }

    /// Inserts documents, which are then majority-committed, except those that exist.
    pub async fn insert_unordered(
        &self,
        into: &str,
        documents: Vec<RawDocumentBuf>,
    ) -> Result<(), Fault> {
        for documents in parts(documents) {
            let documents: RawArrayBuf = documents.into_iter().collect();
            self.write_unordered(rawdoc! { "insert": into, "documents": documents }).await?;
        }
        Ok(())
    }

    /// Sends a write of several documents. Returns the indices of those that exist already.
    async fn write_unordered(&self, mut command: RawDocumentBuf) -> Result<Vec<usize>, Fault> {
        command.append(cstr!("ordered"), false);
        command.append(cstr!("writeConcern"), raw(&majority_document())?);
        command.append(cstr!("maxTimeMS"), millis(self.timeout));
        let reply = self.database.run_raw_command(command).await?;
        let errors = reply.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
        let errors = errors.iter().filter_map(Bson::as_document);
        let field = |error: &Document, name| error.get(name).and_then(number);
        let refused = errors.map(|error| match field(error, "code") {
            Some(DUPLICATE) => usize::try_from(field(error, "index")?).ok(),
            _ => None,
        });
        match refused.collect() {
            Some(refused) if !reply.contains_key("writeConcernError") => Ok(refused),
            _ => Err(DriverError::custom("documents were not written").into()),
        }
    }
}
