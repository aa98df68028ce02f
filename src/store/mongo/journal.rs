//! Writes of users' histories.

use locality_uuid::LocalityId;
use mongodb::bson::{Document, doc};

use super::error::Fault;
use super::schema::{ID, JOURNAL};
use super::tail::{Tail, buckets_up_to};
use super::transaction::Transaction;
use crate::directory::model::event::Event;
use crate::directory::model::record::Record;
use crate::directory::mutation::Mutation;

impl Transaction<'_> {
    /// Adds the event of a user to its history, if there is one. Returns the end of the history.
    pub async fn add_event(
        &mut self,
        mutation: &Mutation,
        id: LocalityId,
        before: Option<&Record>,
        event: Option<&Event>,
    ) -> Result<Tail, Fault> {
        let mut tail = self.users.get(&id).map(|kept| kept.tail.clone()).unwrap_or_default();
        let bucket = event.filter(|_| self.has_journal).and_then(|event| tail.add(before, event));
        if let Some(bucket) = bucket {
            // There may be one already, where users were restored from an older backup than this.
            let journal = self.collections.database.collection::<Document>(JOURNAL);
            let document = bucket.document(id, mutation);
            let by_id = doc! { ID: document.get(ID) };
            journal.replace_one(by_id, document).upsert(true).session(&mut self.session).await?;
        }
        Ok(tail)
    }

    /// Removes the parts of a user's history that are not in its document.
    pub async fn forget_history(&mut self, user: LocalityId) -> Result<(), Fault> {
        let journal = self.collections.database.collection::<Document>(JOURNAL);
        let all = buckets_up_to(user, u64::MAX);
        journal.delete_many(all).session(&mut self.session).await?;
        Ok(())
    }
}
