//! The writes of a mutation that concern the journal.

use locality_uuid::LocalityId;

use crate::error::Fault;
use crate::mutation::transaction::Tables;
use crate::schema::user::JournalHead;
use polynym_directory::{Event, Mutation, Record, Write};

impl Tables<'_> {
    /// Adds the event of a user, if there is one, to the user's history.
    pub fn add_event(
        &mut self,
        mutation: &Mutation,
        id: LocalityId,
        before: Option<&Record>,
        event: Option<&Event>,
    ) -> Result<JournalHead, Fault> {
        let head = self.heads.get(&id).copied().unwrap_or_default();
        match event {
            Some(event) => self.journal.add(mutation, head, before, event),
            None => Ok(head),
        }
    }

    /// Applies a write that concerns the journal alone.
    pub fn write_journal(&mut self, mutation: &Mutation, write: &Write) -> Result<(), Fault> {
        let journal = &mut self.journal;
        match write {
            Write::EndOwnership(key, ownership) => journal.end(key, ownership),
            Write::ForgetOwnership(key, user) => journal.forget(key, *user),
            Write::ReplaceEvents(part, events) => {
                let head = self.heads.get(&part.user).copied().unwrap_or_default();
                journal.replace(head, *part, events)
            }
            Write::RemoveEvents(user, from) => journal.forget_events(*user, *from),
            Write::AddTenantEvent(event, retention) => {
                journal.add_tenant_event(event, *retention, mutation.now.clock_uncertain)
            }
            _ => Ok(()),
        }
    }
}
