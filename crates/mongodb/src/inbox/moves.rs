//! The move of inboxes of an older schema to rows. There they were buckets: documents of the
//! collection `inbox` with up to 50 notices, whose ids were the user's id and a number.

use mongodb::bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::database::writes::WriteCommand;
use crate::inbox::row::{row_of_bucket, rows_of};
use crate::schema::bson::{bson_id, by_id, read_fields, required};
use crate::schema::fields::{EXPIRES_AT, ID, NOTICES};
use crate::schema::tail::bucket_id;
use locality_uuid::LocalityId;
use polynym_directory::timestamp::Timestamp;

/// The collection of buckets.
pub const INBOX: &str = "inbox";
/// Of a bucket: its notices.
const ENTRIES: &str = "m";
/// The buckets of one step: at most some megabytes.
const BUCKETS_PER_STEP: usize = 20;

impl Collections {
    /// Moves the notices of the next buckets, and removes these. Returns the number of notices;
    /// none if there are no more buckets. Nothing may add to buckets meanwhile.
    pub async fn move_buckets(&self) -> Result<Option<usize>, Fault> {
        let options = self.find_options(doc! { ID: 1 }, BUCKETS_PER_STEP);
        let buckets = self.find_documents(&self.collection(INBOX), doc! {}, options).await?;
        if buckets.is_empty() {
            return Ok(None);
        }
        let (mut owners, mut moved) = (Vec::new(), 0);
        for bucket in &buckets {
            let (owner, rows) = read_bucket(bucket)?;
            owners.push(owner);
            moved += rows.len();
            if !rows.is_empty() {
                self.insert_unordered(NOTICES, rows).await?;
            }
        }
        // A purge may have come in between.
        let present = self.present(&owners).await?;
        for gone in owners.iter().filter(|owner| !present.contains(owner)) {
            let rows = doc! { ID: rows_of(*gone, None) };
            self.execute(WriteCommand::delete(NOTICES, &rows)?).await?;
        }
        let ids: Vec<Bson> =
            buckets.iter().map(|bucket| bson_id(bucket)).collect::<Result<_, _>>()?;
        self.execute(WriteCommand::delete(INBOX, &by_id(ids))?).await?;
        Ok(Some(moved))
    }
}

impl Transaction<'_> {
    /// Removes the buckets of a user.
    pub async fn delete_buckets(&mut self, user: LocalityId) -> Result<(), Fault> {
        let all = doc! { ID: { "$gte": bucket_id(user, 0), "$lte": bucket_id(user, u64::MAX) } };
        self.execute(WriteCommand::delete(INBOX, &all)?).await.map(drop)
    }
}

/// The owner of a bucket, and the rows of its notices. Damaged notices stay behind.
fn read_bucket(bucket: &RawDocument) -> Result<(LocalityId, Vec<RawDocumentBuf>), Fault> {
    let [id, notices, expiry] = read_fields(bucket, [ID, ENTRIES, EXPIRES_AT])?;
    let id = required(ID, id, RawBsonRef::as_binary)?.bytes;
    let (user, _) = id.split_first_chunk().ok_or_else(|| Fault::damaged("a short id"))?;
    let user = LocalityId::from(*user);
    let expiry = required(EXPIRES_AT, expiry, RawBsonRef::as_datetime)?;
    let expiry = Timestamp::from_millis(expiry.timestamp_millis());
    let mut rows = Vec::new();
    for notice in required(ENTRIES, notices, RawBsonRef::as_array)? {
        let notice = required(ENTRIES, notice.ok(), RawBsonRef::as_document)?;
        rows.extend(row_of_bucket(user, notice, expiry)?);
    }
    Ok((user, rows))
}
