//! The writes of a mutation that concern the record of a user and its indexes.

use locality_uuid::LocalityId;

use crate::error::Fault;
use crate::mutation::transaction::Tables;
use crate::schema::user::{JournalHead, encode_user, encode_user_over};
use polynym_directory::{Mutation, Policies, ReadSet, Record, Timestamp};
use polynym_store_common::attribute_names::KnownNames;

impl Tables<'_> {
    /// Replaces the user, keeping unknown fields.
    pub(super) fn write_user(
        &mut self,
        record: &Record,
        names: &KnownNames,
        head: JournalHead,
    ) -> Result<(), Fault> {
        let bytes = encode_user(record, names, head);
        let before = self.users.insert(record.id().as_bytes(), bytes.as_slice())?;
        let extended =
            before.and_then(|before| encode_user_over(record, names, head, before.value()));
        if let Some(bytes) = extended {
            self.users.insert(record.id().as_bytes(), bytes.as_slice())?;
        }
        Ok(())
    }

    /// Adds a new user to those of its tenant.
    fn list_user(&mut self, record: &Record, before: Option<&Record>) -> Result<(), Fault> {
        if before.is_none() {
            let (tenant, id) = (record.user.tenant.as_str(), record.id());
            self.tenant_users.insert((tenant, id.as_bytes()), ())?;
        }
        Ok(())
    }

    /// Updates the indexes of a user: its tenant's users, its attributes and its expiry.
    pub(super) fn index_user(
        &mut self,
        record: &Record,
        before: Option<&Record>,
        policies: &Policies,
    ) -> Result<(), Fault> {
        self.list_user(record, before)?;
        self.attributes.index(before, Some(record), policies)?;
        self.schedule(record.id(), before.and_then(Record::expires_at), record.expires_at())
    }

    pub(super) fn remove_user(
        &mut self,
        mutation: &Mutation,
        id: LocalityId,
        read_set: &ReadSet,
    ) -> Result<(), Fault> {
        self.users.remove(id.as_bytes())?;
        self.tenant_users.remove((mutation.tenant.as_str(), id.as_bytes()))?;
        let before = read_set.user(id);
        self.attributes.index(before, None, &mutation.policies)?;
        self.journal.forget_events(id, self.heads.get(&id).map_or(0, |head| head.last))?;
        self.inboxes.forget(id)?;
        self.schedule(id, before.and_then(Record::expires_at), None)
    }

    /// Replaces the time at which a user's state expires.
    fn schedule(
        &mut self,
        id: LocalityId,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
    ) -> Result<(), Fault> {
        if before == after {
            return Ok(());
        }
        if let Some(before) = before {
            self.expiries.remove((before.as_millis(), id.as_bytes()))?;
        }
        if let Some(after) = after {
            self.expiries.insert((after.as_millis(), id.as_bytes()), ())?;
        }
        Ok(())
    }
}
