//! A transaction: its session, its reads and its end.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::options::{
    Acknowledgment, FindOptions, ReadConcern, ReadPreference, SelectionCriteria,
    TransactionOptions, WriteConcern,
};
use mongodb::{ClientSession, Collection};
use tokio::time::{Instant, sleep, timeout};

use crate::client::error::Fault;
use crate::client::pool::count_attempts;
use crate::database::collections::Collections;
use crate::database::freshness::{Freshness, Key};
use crate::database::times::Times;
use crate::schema::bson::bson_id;
use crate::schema::fields::ID;
use crate::schema::preserved::PreservedFields;
use crate::schema::versions::Versions;

/// The time limit of an abort.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);
/// MongoDB's default limit of the lifetime of a transaction.
const LIFETIME: Duration = Duration::from_secs(60);
/// The least time limit of a statement.
const MIN_STATEMENT_TIME: Duration = Duration::from_millis(1);

/// A transaction, and the documents that it has read.
pub struct Transaction<'c> {
    pub collections: &'c Collections,
    pub session: ClientSession,
    /// The end of the time limit of its statements.
    deadline: Instant,
    /// The preserved fields of the users that were read.
    pub users: HashMap<LocalityId, PreservedFields>,
    /// The preserved fields of the tenant that was read.
    pub tenant: Option<PreservedFields>,
    /// The revision of the bulk change that was read, if it exists.
    pub bulk_revision: Option<i64>,
    /// The revision of the delivery that was read, if it exists.
    pub delivery_revision: Option<i64>,
    /// The epoch in which it writes; 0 if it only reads.
    pub epoch: i32,
    /// Whether it has written a document that MongoDB accepts only in the current epoch.
    pub is_in_epoch: bool,
    /// The step by which it raises revisions: random, so that a revision identifies the transaction
    /// that wrote it.
    pub revision_step: i64,
    /// The documents that were read, on a sharded cluster. Elsewhere every snapshot is fresh.
    pub read: HashSet<Key>,
    /// The claims whose insertion a shard has answered.
    pub inserted: Vec<Key>,
}

impl<'c> Transaction<'c> {
    /// Begins a transaction on a snapshot at least as fresh as `freshness`. MongoDB gives up its
    /// statements at the deadline.
    pub async fn begin(
        collections: &'c Collections,
        freshness: &Freshness,
        deadline: Instant,
    ) -> Result<Self, Fault> {
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
        let mut session = freshness.times.session(&collections.client).await?;
        collections.sessions.list(&session).await;
        session.start_transaction().with_options(options.build()).await?;
        let random = getrandom::u32().map_err(Fault::damaged)?;
        let revision_step = 1 + i64::from(random >> 12);

        Ok(Self {
            collections,
            session,
            deadline,
            users: HashMap::new(),
            tenant: None,
            bulk_revision: None,
            delivery_revision: None,
            epoch: 0,
            is_in_epoch: false,
            revision_step,
            read: HashSet::new(),
            inserted: Vec::new(),
        })
    }

    /// The transaction, which writes in the epoch of these versions.
    pub fn with_versions(self, versions: Versions) -> Self {
        Self { epoch: versions.epoch, ..self }
    }

    /// Records documents that are read.
    pub fn record_reads(&mut self, keys: impl Iterator<Item = Key>) {
        if self.collections.is_routed {
            self.read.extend(keys);
        }
    }

    /// Whether its snapshot, at least as fresh as `freshness`, has the latest versions of all
    /// documents that it has read and does not write.
    pub fn is_fresh(&self, freshness: &Freshness, is_written: impl Fn(&Key) -> bool) -> bool {
        freshness.covers(self.read.iter().filter(|key| !is_written(key)))
    }

    /// Adds the reads and times of this transaction to `freshness`.
    pub fn record_into(&mut self, freshness: &mut Freshness) {
        if self.collections.is_routed {
            freshness.learn(self.read.drain().chain(self.inserted.drain(..)), &self.session);
        }
    }

    /// The revision of a user that this transaction has written.
    pub fn written_revision(&self, id: LocalityId) -> i64 {
        self.users.get(&id).map_or(0, |preserved| preserved.revision) + self.revision_step
    }

    /// The time that is left for a statement.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(MIN_STATEMENT_TIME)
    }

    /// The first document that a filter finds.
    pub async fn find_one(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let find = from.find_one(filter).max_time(self.time_left());
        Ok(find.session(&mut self.session).await?)
    }

    /// All documents that a filter matches.
    pub async fn find_documents(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        batch_size: Option<usize>,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        let mut options = FindOptions::builder().max_time(self.time_left()).build();
        options.batch_size = batch_size.map(|size| size as u32);
        let find = from.find(filter).with_options(options);
        let mut cursor = find.session(&mut self.session).await?;
        Ok(cursor.stream(&mut self.session).try_collect().await?)
    }

    /// The ids of documents that a filter matches, by a plain read: shards that it reaches do not
    /// take part in the transaction. It has what the transaction's snapshot has, or what was
    /// committed later; it waits for commits that are visible on some shards only.
    pub async fn find_ids_outside(
        &self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        limit: Option<i64>,
    ) -> Result<Vec<Bson>, Fault> {
        let since = Times::since(self.session.operation_time());
        let mut session = since.session(&self.collections.client).await?;
        let mut options = FindOptions::builder().max_time(self.time_left()).build();
        (options.projection, options.limit) = (Some(doc! { ID: 1 }), limit);
        let find = from.find(filter).with_options(options).read_concern(ReadConcern::majority());
        let mut cursor = find.session(&mut session).await?;
        let found: Vec<_> = cursor.stream(&mut session).try_collect().await?;
        found.iter().map(|document| bson_id(document)).collect()
    }

    /// Commits. A commit whose reply was lost can be sent again. Returns how often the driver has
    /// sent it, too.
    pub async fn commit(&mut self) -> (Result<(), Fault>, usize) {
        let commit = async { self.session.commit_transaction().await };
        let (outcome, sent) = count_attempts(commit).await;
        (outcome.map_err(|error| Fault::of_commit(&error)), sent)
    }

    /// Aborts the transaction. If that fails or takes long, the server aborts it later: an abort
    /// that waits for a hanging shard would keep its connection. The session is not used again
    /// until then.
    pub async fn abort(self) {
        let mut session = self.session;
        if timeout(ABORT_TIMEOUT, session.abort_transaction()).await.is_err() {
            tokio::spawn(async {
                sleep(LIFETIME).await;
                drop(session);
            });
        }
    }
}

/// Fails unless a statement matched all documents that the transaction has read.
pub fn expect_matched(count: u64, wanted: usize) -> Result<(), Fault> {
    if count == wanted as u64 {
        Ok(())
    } else {
        Err(Fault::damaged("a statement did not match all documents that were read"))
    }
}
