//! One transaction: its session, what it has read, and its end.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::options::{
    Acknowledgment, ReadConcern, ReadPreference, SelectionCriteria, TransactionOptions,
    WriteConcern,
};
use mongodb::{ClientSession, Collection};

use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::database::freshness::{Freshness, Key};
use crate::store::mongo::schema::preserved::PreservedFields;
use crate::store::mongo::schema::versions::Versions;

pub struct Transaction<'c> {
    pub collections: &'c Collections,
    pub session: ClientSession,
    /// The kept parts of the documents of the users that were read.
    pub users: HashMap<LocalityId, PreservedFields>,
    /// The kept part of the document of the tenant that was read.
    pub tenant: Option<PreservedFields>,
    /// The epoch under which it writes; 0 where the store has none.
    pub epoch: i32,
    /// Whether it writes the journal.
    pub has_journal: bool,
    /// Whether it writes inboxes.
    pub has_inboxes: bool,
    /// Whether it has written what MongoDB takes in any epoch: claims, and deletions.
    pub needs_epoch: bool,
    /// Whether it has written what MongoDB takes only in the present epoch.
    pub is_in_epoch: bool,
    /// By how much it raises revisions: at random, so that a revision identifies the transaction
    /// that wrote it.
    pub raise: i64,
    /// The documents that were read. Behind a router alone: elsewhere a snapshot begins as late as
    /// can be.
    pub read: HashSet<Key>,
    /// Claims that were inserted, as far as the shards have answered, if only that one of them is
    /// taken.
    pub inserted: Vec<Key>,
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

    /// The first document that a filter finds.
    pub async fn find_one(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let find = from.find_one(filter).max_time(self.collections.timeout);
        Ok(find.session(&mut self.session).await?)
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

/// Fails unless every document that was read in the transaction was written: else the store is
/// damaged.
pub fn all_there(count: u64, wanted: usize) -> Result<(), Fault> {
    if count == wanted as u64 {
        Ok(())
    } else {
        Err(Fault::damaged("a user who lists what has no claim"))
    }
}
