//! Finds of documents by their ids, as the caller reads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::options::ReadConcern;

use crate::client::error::Fault;
use crate::database::freshness::Key;
use crate::database::lateness::Lateness;
use crate::database::ordered::OrderedFinds;
use crate::database::transaction::Transaction;
use crate::lookup::late_find::{Call, find_without_away};
use crate::lookup::plain_find::{NO_BATCH, PlainFind, Query, find};
use crate::lookup::reply::Reply;

/// How a find reads: with a read concern from some members, after earlier finds, or in the snapshot
/// of a transaction.
pub enum ReadMode<'t, 'c> {
    Plain(PlainFind),
    /// A plain find of a call, which goes on without shards that hang.
    InParts(PlainFind, Call, Arc<Lateness>),
    Ordered {
        finds: &'t mut OrderedFinds,
        time: Duration,
    },
    Snapshot(&'t mut Transaction<'c>),
}

impl ReadMode<'_, '_> {
    /// Records reads of a snapshot, whose freshness is checked.
    pub fn record_reads(&mut self, keys: impl Iterator<Item = Key>) {
        if let Self::Snapshot(transaction) = self {
            transaction.record_reads(keys);
        }
    }

    /// The documents that a query names, as many as fit in a reply.
    pub async fn find(&mut self, query: Query<'_>) -> Result<Reply, Fault> {
        let Query { from, ids, fields } = query;
        let received = match self {
            Self::Plain(plain) => return plain.clone().send(from, ids(), fields).await,
            Self::InParts(plain, call, lateness) => {
                return find_without_away(lateness, plain, &query, *call).await;
            }
            Self::Ordered { finds, time } => {
                let find = find(from, ids(), fields);
                let find = find.read_concern(ReadConcern::majority()).max_time(*time);
                let session = &mut finds.session;
                let mut cursor = find.session(&mut *session).batch().await?;
                cursor.stream(session).try_next().await?
            }
            Self::Snapshot(transaction) => {
                let find = find(from, ids(), fields).max_time(transaction.time_left());
                let session = &mut transaction.session;
                let mut cursor = find.session(&mut *session).batch().await?;
                cursor.stream(session).try_next().await?
            }
        };
        Reply::of(received.ok_or_else(|| Fault::damaged(NO_BATCH))?)
    }
}
