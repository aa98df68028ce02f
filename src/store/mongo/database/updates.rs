//! Updates of many documents in one command, without a transaction.

use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error as DriverError;

use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::schema::bson::number;

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
        let command = doc! {
            "update": collection,
            "updates": updates,
            "ordered": false,
            "writeConcern": { "w": "majority" },
            "maxTimeMS": self.timeout.as_millis() as i64,
        };
        let reply = self.database.run_command(command).await?;
        let errors = reply.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
        let errors = errors.iter().filter_map(Bson::as_document);
        let field = |error: &Document, name| error.get(name).and_then(number);
        let refused = errors.map(|error| match field(error, "code") {
            Some(DUPLICATE) => usize::try_from(field(error, "index")?).ok(),
            _ => None,
        });
        match refused.collect() {
            Some(refused) if !reply.contains_key("writeConcernError") => Ok(refused),
            _ => Err(DriverError::custom("documents were not updated").into()),
        }
    }
}
