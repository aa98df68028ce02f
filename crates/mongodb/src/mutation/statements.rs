//! The statements of a mutation: users first, then claims by their keys, then the request, so that
//! conflicting transactions fail early instead of waiting for each other.

use std::iter;

use locality_uuid::LocalityId;
use mongodb::bson::{Document, doc};

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::freshness::Key;
use crate::database::transaction::{Transaction, expect_matched};
use crate::schema::bson::{id_value, raw};
#[cfg(feature = "test-entity")]
use crate::schema::fields::META;
use crate::schema::fields::{EPOCH, ID, REQUESTS, REVISION, TENANT, USERS};
use crate::schema::preserved::{PreservedFields, with_epoch};
use crate::schema::request::{StoredRequest, document_of, request_id};
use crate::schema::tail::Tail;
use crate::schema::tenant::read_tenant;
use crate::schema::user::{StoredUser, user_document};
use polynym_directory::{
    IdempotencyKey, InboxLimits, Mutation, ReadRequest, ReadSet, Record, Write, WriteSet,
};
use polynym_store_common::searched::IndexedAttributes;

impl Transaction<'_> {
    /// Reads what the decision needs into the read set.
    pub async fn read(
        &mut self,
        mutation: &Mutation,
        needs: ReadRequest,
        read_set: &mut ReadSet,
    ) -> Result<(), Fault> {
        self.read_bulk_changes(&mutation.tenant, &needs, read_set).await?;
        self.read_deliveries(&mutation.tenant, &needs, read_set).await?;
        for id in needs.users {
            let document =
                self.find_one(&self.collections.users, doc! { ID: id_value(id) }).await?;
            let record = match &document {
                Some(document) => {
                    self.users.insert(id, PreservedFields::of_user(document)?);
                    Some(self.collections.record(StoredUser::read(document)?).await?)
                }
                None => None,
            };
            read_set.add_user(id, record);
            self.record_reads(iter::once(Key::User(id)));
        }

        self.read_claims(needs.claims, read_set).await?;
        for part in needs.histories {
            let events = self.read_history(&mutation.tenant, part).await?;
            read_set.add_history(part, events);
        }
        if needs.tenant {
            let name = mutation.tenant.as_str();
            let document = self.find_one(&self.collections.tenants, doc! { ID: name }).await?;
            self.tenant = document.as_deref().map(PreservedFields::of_tenant).transpose()?;
            read_set.set_tenant(document.as_deref().map(read_tenant).transpose()?);
            self.record_reads(iter::once(Key::Tenant));
        }

        if needs.members {
            // A plain read: no shard takes part in the transaction for it.
            let members = doc! { TENANT: mutation.tenant.as_str() };
            let member = self.find_ids_outside(&self.collections.users, members, Some(1)).await?;
            read_set.set_members(!member.is_empty());
        }
        Ok(())
    }

    /// The record of a request.
    pub async fn request(
        &mut self,
        request: &IdempotencyKey,
    ) -> Result<Option<StoredRequest>, Fault> {
        let document =
            self.find_one(&self.collections.requests, doc! { ID: request_id(request) }).await?;
        self.record_reads(iter::once(Key::Request));
        document.as_deref().map(StoredRequest::read).transpose()
    }

    /// Writes the write set of a mutation. `tokens` has the names of all attributes of its users.
    pub async fn write(
        &mut self,
        mutation: &Mutation,
        (read_set, write_set): (&ReadSet, &WriteSet),
        tokens: IndexedAttributes<'_>,
    ) -> Result<(), Fault> {
        let (mut claims, mut ended, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
        for write in &write_set.writes {
            match write {
                Write::PutUser(record) => {
                    let before = read_set.user(record.id());
                    let event = write_set.event(record.id());
                    let tail = self.add_event(mutation, record.id(), before, event).await?;
                    self.put_user(record, tokens, &tail).await?;
                }
                Write::RemoveUser(id) => self.delete_user(*id).await?,
                Write::Notify(user, notice) => {
                    let limits = InboxLimits::from_policies(&mutation.policies);
                    self.notify(*user, notice, limits).await?;
                }
                Write::PutBulkChange(_)
                | Write::PutBulkUsers(..)
                | Write::RemoveBulkChange(_)
                | Write::PutDelivery(_)
                | Write::RemoveDelivery(_) => {}
                Write::EndOwnership(key, ownership) => ended.push((key, &**ownership)),
                Write::ForgetOwnership(key, user) => forgotten.push((key, *user)),
                Write::AddTenantEvent(event, retention) => {
                    self.add_tenant_event(event, *retention).await?;
                }
                Write::ReplaceEvents(part, events) => {
                    self.replace_events(mutation, part.user, events).await?;
                }
                Write::RemoveEvents(user, last) => {
                    self.confirm_by_user(*user).await?;
                    self.delete_events(*user, *last).await?;
                }
                Write::Claim(key, write) => {
                    self.collections.hints.learn_write(key, write);
                    claims.push((key, write));
                }
                Write::PutTenant(record) => self.write_tenant(record).await?,
                Write::RemoveTenant => {
                    self.delete_tenant(&mutation.tenant).await?;
                    self.delete_names(&mutation.tenant).await?;
                }
                #[cfg(feature = "test-entity")]
                Write::Count(name) => self.count(name).await?,
            }
        }

        self.write_jobs(mutation, read_set, write_set).await?;
        self.forget_listed_ownerships(&forgotten).await?;
        self.write_claims(&claims).await?;
        self.end_ownerships(mutation, &ended).await
    }

    #[cfg(feature = "test-entity")]
    async fn count(&mut self, name: &str) -> Result<(), Fault> {
        let count = doc! { "$inc": { "n": 1_i64 } };
        self.execute(WriteCommand::upsert(META, &doc! { ID: name }, raw(&count)?)?).await?;
        Ok(())
    }

    async fn put_user(
        &mut self,
        record: &Record,
        tokens: IndexedAttributes<'_>,
        tail: &Tail,
    ) -> Result<(), Fault> {
        let document = user_document(record, tokens, tail, self.written_revision(record.id()));
        let document = raw(&with_epoch(document, self.epoch, self.users.get(&record.id())))?;
        match self.users.get(&record.id()).map(|preserved| preserved.revision) {
            None => {
                self.execute(WriteCommand::insert(USERS, [document])).await?;
            }
            Some(revision) => {
                let filter = doc! { ID: id_value(record.id()), REVISION: revision };
                let replace = WriteCommand::replace(USERS, &filter, document)?;
                expect_matched(self.execute(replace).await?, 1)?;
            }
        }
        self.is_in_epoch = true;
        Ok(())
    }

    /// Raises the revision of a user on which a write depends, so that the transaction conflicts
    /// with a change of the user.
    pub async fn touch(&mut self, id: LocalityId) -> Result<(), Fault> {
        let change = doc! { "$inc": { REVISION: 1_i64 }, "$set": { EPOCH: self.epoch } };
        self.update_user(doc! { ID: id_value(id) }, change).await
    }

    async fn delete_user(&mut self, id: LocalityId) -> Result<(), Fault> {
        // MongoDB does not validate deletions: an update checks the epoch before.
        self.confirm_by_user(id).await?;
        let preserved = self.users.get(&id);
        let filter =
            doc! { ID: id_value(id), REVISION: preserved.map(|preserved| preserved.revision) };
        let has_history = preserved.is_some_and(|preserved| preserved.tail.count > 0);
        let deleted = self.execute(WriteCommand::delete_one(USERS, &filter)?).await?;
        expect_matched(deleted, 1)?;
        if has_history {
            self.delete_events(id, u64::MAX).await?;
        }
        self.forget_ownerships(id).await?;
        self.delete_inbox(id).await
    }

    /// Ensures that the writes succeed only in the current epoch: a user that was read gets it. Its
    /// revision rises, because MongoDB does not validate an update that changes nothing.
    async fn confirm_by_user(&mut self, id: LocalityId) -> Result<(), Fault> {
        let Some(preserved) = self.users.get_mut(&id) else { return Ok(()) };
        let filter = doc! { ID: id_value(id), REVISION: preserved.revision };
        let change =
            doc! { "$set": { EPOCH: self.epoch }, "$inc": { REVISION: self.revision_step } };
        preserved.revision += self.revision_step;
        self.update_user(filter, change).await
    }

    pub async fn update_user(&mut self, filter: Document, change: Document) -> Result<(), Fault> {
        let updated = self.execute(WriteCommand::update(USERS, &filter, &change)?).await?;
        self.is_in_epoch = true;
        expect_matched(updated, 1)
    }

    /// Records that a request was carried out, and replaces an expired record.
    pub async fn record_request(
        &mut self,
        request: &IdempotencyKey,
        write_set: &WriteSet,
        mutation: &Mutation,
    ) -> Result<(), Fault> {
        let document = raw(&document_of(request, write_set, mutation))?;
        let filter = doc! { ID: request_id(request) };
        self.execute(WriteCommand::upsert(REQUESTS, &filter, document)?).await?;
        Ok(())
    }
}
