//! The move of inboxes of an older schema to rows. There they were buckets: documents of the
//! collection `inbox` with up to 50 notices, whose ids were the user's id and a number.

use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::error::Error as DriverError;

use crate::client::error::{Fault, has_code};
use crate::command::run::run;
use crate::command::write::WriteCommand;
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::inbox::row::{row_of_bucket, split_id};
use crate::schema::bson::{bson_id, by_id, read_fields, required};
use crate::schema::fields::{EXPIRES_AT, ID, NOTICES};
use crate::schema::tail::bucket_id;
use polynym_directory::timestamp::Timestamp;

/// The collection of buckets.
pub const INBOX: &str = "inbox";
/// Of a bucket: its notices.
const ENTRIES: &str = "m";
/// The buckets of one step: at most some megabytes.
const BUCKETS_PER_STEP: usize = 20;
/// NamespaceNotFound.
const NO_SUCH_COLLECTION: i32 = 26;

/// The progress of a move.
#[derive(Default)]
pub struct MovedBuckets {
    /// The id of the last bucket that was read.
    after: Option<Bson>,
    /// The notices that were moved.
    pub notices: usize,
    /// The buckets and notices that cannot be read. The buckets stay.
    pub unreadable: usize,
}

impl Collections {
    /// Has MongoDB refuse all writes of buckets: a server of an older program may be late. Waits
    /// for transactions for this time.
    pub async fn close_buckets(&self, wait: Duration) -> Result<(), DriverError> {
        let nothing = doc! { "_id": { "$exists": false } };
        let close = doc! {
            "collMod": INBOX, "validator": nothing, "validationLevel": "strict",
        };
        match run(&self.database, close, wait).await {
            Err(error) if !has_code(&error.kind, NO_SUCH_COLLECTION) => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves the notices of the next buckets, and removes these. Returns whether there were any.
    pub async fn move_buckets(&self, moved: &mut MovedBuckets) -> Result<bool, Fault> {
        let after = moved.after.clone().unwrap_or(Bson::MinKey);
        let options = self.find_options(doc! { ID: 1 }, BUCKETS_PER_STEP);
        let next = doc! { ID: { "$gt": after } };
        let buckets = self.find_documents(&self.collection(INBOX), next, options).await?;
        let (mut owners, mut read) = (Vec::new(), Vec::new());
        for bucket in &buckets {
            let id = bson_id(bucket)?;
            moved.after = Some(id.clone());
            let Ok((owner, entries)) = read_bucket(bucket) else {
                moved.unreadable += 1;
                continue;
            };
            let (count, rows) = (entries.len(), entries.into_iter().flatten().collect::<Vec<_>>());
            moved.unreadable += count - rows.len();
            moved.notices += rows.len();
            if count == rows.len() {
                read.push(id);
            }
            owners.push(owner);
            if !rows.is_empty() {
                self.insert_unordered(NOTICES, rows).await?;
            }
        }
        // A purge may have come in between.
        self.delete_inboxes_without_owner(&owners).await?;
        self.execute(WriteCommand::delete(INBOX, &by_id(read))?).await?;
        Ok(!buckets.is_empty())
    }
}

impl Transaction<'_> {
    /// Removes the buckets of a user.
    pub async fn delete_buckets(&mut self, user: LocalityId) -> Result<(), Fault> {
        let all = doc! { ID: { "$gte": bucket_id(user, 0), "$lte": bucket_id(user, u64::MAX) } };
        self.execute(WriteCommand::delete(INBOX, &all)?).await.map(drop)
    }
}

/// The owner of a bucket, and the row of each of its notices, if it can be read.
fn read_bucket(bucket: &RawDocument) -> Result<(LocalityId, Vec<Option<RawDocumentBuf>>), Fault> {
    let (user, _) = split_id(bucket)?;
    let [notices, expiry] = read_fields(bucket, [ENTRIES, EXPIRES_AT])?;
    let expiry = required(EXPIRES_AT, expiry, RawBsonRef::as_datetime)?;
    let expiry = Timestamp::from_millis(expiry.timestamp_millis());
    let row = |notice: Option<RawBsonRef<'_>>| {
        let notice = required(ENTRIES, notice, RawBsonRef::as_document).ok()?;
        row_of_bucket(user, notice, expiry).ok()
    };
    let notices = required(ENTRIES, notices, RawBsonRef::as_array)?;
    Ok((user, notices.into_iter().map(|notice| row(notice.ok())).collect()))
}
