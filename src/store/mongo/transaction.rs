//! One transaction with the statements of a mutation: users first, then claims by their keys, then
//! the request, so that two transactions that want the same conflict early instead of waiting on
//! each other.

use std::collections::{HashMap, HashSet};
use std::iter;

use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::{
    Acknowledgment, ReadConcern, ReadPreference, SelectionCriteria, TransactionOptions,
    WriteConcern,
};
use mongodb::{ClientSession, Collection};

use super::collections::Collections;
use super::error::Fault;
use super::freshness::{Freshness, Key};
use super::preserved::{PreservedFields, stamped};
use super::schema::{
    CONFIRMED, EPOCH, ID, META, REVISION, SCHEMA, StoredRequest, StoredUser, TENANT, id_value,
    read_tenant, request_document, request_id, user_document,
};
use super::tail::Tail;
use super::versions::Versions;
use crate::directory::model::record::Record;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::read_set::{ReadRequest, ReadSet, Write, WriteSet};
use crate::directory::mutation::{IdempotencyKey, Mutation};
use crate::directory::stores::InboxLimits;
use crate::store::searched::IndexedAttributes;

pub struct Transaction<'c> {
    pub(super) collections: &'c Collections,
    pub(super) session: ClientSession,
    /// The kept parts of the documents of the users that were read.
    pub(super) users: HashMap<LocalityId, PreservedFields>,
    /// The kept part of the document of the tenant that was read.
    pub(super) tenant: Option<PreservedFields>,
    /// The epoch under which it writes; 0 where the store has none.
    pub(super) epoch: i32,
    /// Whether it writes the journal.
    pub(super) has_journal: bool,
    /// Whether it writes inboxes.
    pub(super) has_inboxes: bool,
    /// Whether it has written what MongoDB takes in any epoch: claims, and deletions.
    pub(super) needs_epoch: bool,
    /// Whether it has written what MongoDB takes only in the present epoch.
    pub(super) is_in_epoch: bool,
    /// By how much it raises revisions: at random, so that a revision identifies the transaction
    /// that wrote it.
    pub(super) raise: i64,
    /// The documents that were read. Behind a router alone: elsewhere a snapshot begins as late as
    /// can be.
    read: HashSet<Key>,
    /// Claims that were inserted, as far as the shards have answered, if only that one of them is
    /// taken.
    pub(super) inserted: Vec<Key>,
}

impl<'c> Transaction<'c> {
    /// Begins a transaction on a snapshot at least as fresh as `freshness`.
    pub async fn begin(collections: &'c Collections, freshness: &Freshness) -> Result<Self, Fault> {
        let time = collections.timeout;
        let concern = WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .w_timeout(time)
            .build();
        let options = TransactionOptions::builder()
            .read_concern(ReadConcern::snapshot())
            .write_concern(concern)
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .max_commit_time(time);
        let mut session = freshness.session(&collections.client).await?;
        collections.sessions.list(&session).await;
        session.start_transaction().with_options(options.build()).await?;
        let random = getrandom::u32().map_err(Fault::damaged)?;
        let raise = 1 + i64::from(random >> 12);

        Ok(Self {
            collections,
            session,
            users: HashMap::new(),
            tenant: None,
            epoch: 0,
            has_journal: false,
            has_inboxes: false,
            needs_epoch: false,
            is_in_epoch: false,
            raise,
            read: HashSet::new(),
            inserted: Vec::new(),
        })
    }

    /// The same transaction, which writes as a store of these versions has it.
    pub fn under(self, versions: Versions) -> Self {
        let (has_journal, has_inboxes) = (versions.has_journal(), versions.has_inboxes());
        Self { epoch: versions.epoch, has_journal, has_inboxes, ..self }
    }

    /// Takes note of documents that are read.
    pub fn note(&mut self, keys: impl Iterator<Item = Key>) {
        if self.collections.is_routed {
            self.read.extend(keys);
        }
    }

    /// Whether its snapshot, which is as `freshness` had it, holds the latest of all that it has
    /// read and does not write.
    pub fn is_fresh(&self, freshness: &Freshness, is_written: impl Fn(&Key) -> bool) -> bool {
        freshness.covers(self.read.iter().filter(|key| !is_written(key)))
    }

    /// Adds to `freshness` what this transaction has learned.
    pub fn teach(&mut self, freshness: &mut Freshness) {
        if self.collections.is_routed {
            freshness.learn(self.read.drain().chain(self.inserted.drain(..)), &self.session);
        }
    }

    /// The revision that a user has where this transaction has written it.
    pub fn written_revision(&self, id: LocalityId) -> i64 {
        self.users.get(&id).map_or(0, |kept| kept.revision) + self.raise
    }

    /// For reads of another kind.
    pub const fn session(&mut self) -> &mut ClientSession {
        &mut self.session
    }

    /// Adds to the read set what the decision needs.
    pub async fn read(
        &mut self,
        mutation: &Mutation,
        needs: ReadRequest,
        read_set: &mut ReadSet,
    ) -> Result<(), Fault> {
        for id in needs.users {
            let document =
                self.find_one(&self.collections.users, doc! { ID: id_value(id) }).await?;
            if let Some(document) = &document {
                self.users.insert(id, PreservedFields::of_user(document)?);
            }
            let record = match document {
                Some(document) => {
                    Some(self.collections.record(StoredUser::read(&document)?).await?)
                }
                None => None,
            };
            read_set.add_user(id, record);
            self.note(iter::once(Key::User(id)));
        }

        self.read_claims(needs.claims, read_set).await?;
        for id in needs.histories {
            let events = self.read_history(&mutation.tenant, id).await?;
            read_set.add_history(id, events);
        }
        if needs.tenant {
            let name = mutation.tenant.as_str();
            let document = self.find_one(&self.collections.tenants, doc! { ID: name }).await?;
            self.tenant = document
                .as_ref()
                .map(|document| PreservedFields::of_tenant(document))
                .transpose()?;
            read_set.set_tenant(document.map(|document| read_tenant(&document)).transpose()?);
            self.note(iter::once(Key::Tenant));
        }

        if needs.members {
            read_set.set_members(self.has_members(mutation.tenant.as_str()).await?);
        }
        Ok(())
    }

    /// Whether a tenant has users. Asks all shards.
    async fn has_members(&mut self, name: &str) -> Result<bool, Fault> {
        let users = self.collections.users.clone();
        Ok(self.find_one(&users, doc! { TENANT: name }).await?.is_some())
    }

    /// The record of a request.
    pub async fn request(
        &mut self,
        request: &IdempotencyKey,
    ) -> Result<Option<StoredRequest>, Fault> {
        let document =
            self.find_one(&self.collections.requests, doc! { ID: request_id(request) }).await?;
        self.note(iter::once(Key::Request));
        document.map(|document| StoredRequest::read(&document)).transpose()
    }

    /// The first document that a filter finds.
    pub async fn find_one(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let find = from.find_one(filter).max_time(self.collections.timeout);
        Ok(find.session(&mut self.session).await?)
    }

    /// Writes the write set of a mutation. `tokens` has the names of all attributes
    /// of its users, where they are stored by tokens.
    pub async fn write(
        &mut self,
        mutation: &Mutation,
        (read_set, write_set): (&ReadSet, &WriteSet),
        tokens: Option<IndexedAttributes<'_>>,
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
                Write::RemoveUser(id) => self.delete_user(*id, mutation.time).await?,
                Write::Notify(user, notice) if self.has_inboxes => {
                    let limits = InboxLimits::of(&mutation.policies);
                    self.notify(*user, notice, limits).await?;
                }
                Write::Notify(..) => {}
                Write::EndOwnership(key, ownership) => ended.push((key, &**ownership)),
                Write::ForgetOwnership(key, user) => forgotten.push((key, *user)),
                Write::AddTenantEvent(event, retention) => {
                    self.add_tenant_event(event, *retention).await?;
                }
                Write::ReplaceEvents(user, events) => self.replace_events(*user, events).await?,
                Write::Claim(key, write) => {
                    self.collections.hints.learn_write(key, write);
                    claims.push((key, write));
                }
                Write::PutTenant(record) => self.write_tenant(record).await?,
                Write::RemoveTenant => {
                    self.delete_tenant(&mutation.tenant).await?;
                    self.forget_names(&mutation.tenant).await?;
                }
                #[cfg(feature = "test-entity")]
                Write::Count(name) => self.count(name).await?,
            }
        }

        self.forget_those(&forgotten).await?;
        self.write_claims(&claims).await?;
        if self.has_journal {
            self.end_ownerships(mutation, &ended).await?;
        }
        Ok(())
    }

    #[cfg(feature = "test-entity")]
    async fn count(&mut self, name: &str) -> Result<(), Fault> {
        let meta = self.collections.database.collection::<Document>(META);
        let change = meta.update_one(doc! { ID: name }, doc! { "$inc": { "n": 1_i64 } });
        change.upsert(true).session(&mut self.session).await?;
        Ok(())
    }

    async fn put_user(
        &mut self,
        record: &Record,
        tokens: Option<IndexedAttributes<'_>>,
        tail: &Tail,
    ) -> Result<(), Fault> {
        let document = user_document(record, tokens, tail, self.written_revision(record.id()));
        let document = raw(&stamped(document, self.epoch, self.users.get(&record.id())))?;
        match self.users.get(&record.id()).map(|kept| kept.revision) {
            None => self.insert_user(document).await?,
            Some(revision) => self.replace_user(record.id(), document, revision).await?,
        }
        self.is_in_epoch = true;
        Ok(())
    }

    /// Makes sure that what was written counts only in the present epoch. Users and tenants see to
    /// that themselves; where only claims were written, the document of the store's versions does.
    pub async fn confirm_epoch(&mut self) -> Result<(), Fault> {
        if self.is_in_epoch || !self.needs_epoch {
            return Ok(());
        }
        let meta = self.collections.database.collection::<Document>(META);
        // Null stands for none.
        let epoch = Some(self.epoch).filter(|epoch| *epoch > 0);
        let present = doc! { ID: SCHEMA, EPOCH: epoch };
        let confirmed = meta
            .update_one(present, doc! { "$inc": { CONFIRMED: 1_i64 } })
            .session(&mut self.session)
            .await?;

        if confirmed.matched_count == 1 { Ok(()) } else { Err(Fault::Fenced) }
    }

    /// Raises the revision of a user: what depends on a user who is only read must not be written
    /// beside a change of it.
    pub async fn touch(&mut self, id: LocalityId) -> Result<(), Fault> {
        let mut change = doc! { "$inc": { REVISION: 1_i64 } };
        if self.epoch > 0 {
            change.insert("$set", doc! { EPOCH: self.epoch });
        }
        self.update_user(doc! { ID: id_value(id) }, change).await
    }

    async fn insert_user(&mut self, document: RawDocumentBuf) -> Result<(), Fault> {
        self.collections.users.insert_one(document).session(&mut self.session).await?;
        Ok(())
    }

    async fn replace_user(
        &mut self,
        id: LocalityId,
        document: RawDocumentBuf,
        revision: i64,
    ) -> Result<(), Fault> {
        let filter = doc! { ID: id_value(id), REVISION: revision };
        let replaced =
            self.collections.users.replace_one(filter, document).session(&mut self.session).await?;
        all_there(replaced.matched_count, 1)
    }

    async fn delete_user(&mut self, id: LocalityId, now: Timestamp) -> Result<(), Fault> {
        let kept = self.users.get(&id);
        let filter = doc! { ID: id_value(id), REVISION: kept.map(|kept| kept.revision) };
        let has_history = kept.is_some_and(|kept| kept.tail.count > 0);
        self.needs_epoch = true;
        // MongoDB does not validate deletions: an update before it carries the epoch.
        if self.epoch > 0 {
            self.update_user(filter.clone(), doc! { "$set": { EPOCH: self.epoch } }).await?;
        }
        let deleted = self.collections.users.delete_one(filter).session(&mut self.session).await?;
        all_there(deleted.deleted_count, 1)?;
        if has_history {
            self.forget_history(id).await?;
        }
        if self.has_journal {
            self.forget_ownerships(id).await?;
        }
        if self.has_inboxes { self.forget_inbox(id, now).await } else { Ok(()) }
    }

    pub(super) async fn update_user(
        &mut self,
        filter: Document,
        change: Document,
    ) -> Result<(), Fault> {
        let updated =
            self.collections.users.update_one(filter, change).session(&mut self.session).await?;
        self.is_in_epoch = true;
        all_there(updated.matched_count, 1)
    }

    /// Remembers that a request was carried out, in the place of what is there of one whose time is
    /// over.
    pub async fn remember(
        &mut self,
        request: &IdempotencyKey,
        subject: Option<LocalityId>,
        time: Timestamp,
    ) -> Result<(), Fault> {
        let document =
            raw(&request_document(request, IdempotencyKey::stored_subject(subject), time))?;
        let filter = doc! { ID: request_id(request) };
        let requests = &self.collections.requests;
        requests.replace_one(filter, document).upsert(true).session(&mut self.session).await?;
        Ok(())
    }

    /// Commits, or tries to again: a commit whose reply was lost can be sent a second time.
    pub async fn commit(&mut self) -> Result<(), Fault> {
        self.session.commit_transaction().await.map_err(|error| Fault::of_commit(&error))
    }

    /// Gives the transaction up. Where that fails, the server does it in its own time.
    pub async fn abort(mut self) {
        let _ = self.session.abort_transaction().await;
    }
}

pub fn raw(document: &Document) -> Result<RawDocumentBuf, Fault> {
    RawDocumentBuf::try_from(document).map_err(Fault::damaged)
}

/// Fails unless every document that was read in the transaction was written: else the store is
/// damaged.
pub fn all_there(count: u64, wanted: usize) -> Result<(), Fault> {
    if count == wanted as u64 {
        Ok(())
    } else {
        Err(Fault::damaged("a user who lists what has no claim"))
    }
}
