//! Writes in a transaction and outside of one.

use mongodb::bson::{Document, RawDocumentBuf};

use crate::client::error::Fault;
use crate::command::write::{WriteCommand, WriteReply, parts};
use crate::database::collections::Collections;
use crate::database::transaction::{Transaction, expect_matched};
use crate::schema::bson::raw;

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

    /// Inserts documents, by as many commands as they need.
    pub async fn insert_many(
        &mut self,
        into: &str,
        documents: Vec<RawDocumentBuf>,
    ) -> Result<(), Fault> {
        for documents in parts(documents) {
            self.execute(WriteCommand::insert(into, documents)).await?;
        }
        Ok(())
    }

    /// Sends updates, each of which must match a document.
    pub async fn update_many(
        &mut self,
        collection: &str,
        updates: Vec<Document>,
    ) -> Result<(), Fault> {
        for updates in parts(statements(&updates)?) {
            let count = updates.len();
            let found = self.execute(WriteCommand::updates(collection, updates)).await?;
            expect_matched(found, count)?;
        }
        Ok(())
    }
}

impl Collections {
    /// Sends a write, which is then majority-committed. Returns the number of documents that it
    /// inserted, matched or deleted.
    pub async fn execute(&self, command: WriteCommand) -> Result<u64, Fault> {
        command.run(&self.database, self.timeout).await
    }

    /// Sends updates, which are then majority-committed. Returns how many matched a document.
    pub async fn update_many(
        &self,
        collection: &str,
        updates: Vec<Document>,
    ) -> Result<u64, Fault> {
        let mut matched = 0;
        for updates in parts(statements(&updates)?) {
            matched += self.execute(WriteCommand::updates(collection, updates)).await?;
        }
        Ok(matched)
    }
}

fn statements(updates: &[Document]) -> Result<Vec<RawDocumentBuf>, Fault> {
    updates.iter().map(raw).collect()
}
