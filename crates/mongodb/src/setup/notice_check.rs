//! The check of notices for `store verify`: each has an owner that exists.

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use locality_uuid::LocalityId;
use mongodb::bson::{RawDocument, doc};

use crate::client::error::Fault;
use crate::database::writes::WriteCommand;
use crate::inbox::row::{NOTICE, read_id, rows_of};
use crate::schema::bson::{as_id, read_fields, required};
use crate::schema::fields::{ID, NOTICES};
use crate::setup::integrity::{BATCH, IntegritySession};
use polynym_directory::error::Error;
use polynym_store_common::integrity::ContentFault;

/// The owner and the id of a notice.
fn read_row(row: &RawDocument) -> Result<(LocalityId, LocalityId), Fault> {
    let [notice] = read_fields(row, [NOTICE])?;
    Ok((read_id(row)?.0, required(NOTICE, notice, as_id)?))
}

impl IntegritySession {
    /// The faults of all notices.
    pub(super) fn all_notice_faults(&self) -> BoxStream<'_, Result<Option<ContentFault>, Error>> {
        let (notices, fields) = (self.collections.collection(NOTICES), doc! { ID: 1, NOTICE: 1 });
        let rows = self.walk_fields(&notices, fields, read_row).try_chunks(BATCH);
        let faults = rows.map_err(|error| error.1).and_then(|rows| self.notice_faults(rows));
        faults.map_ok(|faults| stream::iter(faults.into_iter().map(Ok))).try_flatten().boxed()
    }

    async fn notice_faults(
        &self,
        rows: Vec<Result<(LocalityId, LocalityId), Fault>>,
    ) -> Result<Vec<Option<ContentFault>>, Error> {
        let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut owners: Vec<_> = rows.iter().map(|(owner, _)| *owner).collect();
        owners.dedup();
        let present = self.collections.present(&owners).await?;
        let fault = |(owner, notice)| {
            (!present.contains(&owner)).then_some(ContentFault::Ownerless(owner, notice))
        };
        Ok(rows.into_iter().map(fault).collect())
    }

    /// Removes the notices of users who do not exist.
    pub(super) async fn repair_each_notice(&self, faults: &[ContentFault]) -> Result<(), Fault> {
        for fault in faults {
            let ContentFault::Ownerless(owner, _) = fault else { continue };
            if self.collections.present(&[*owner]).await?.is_empty() {
                let rows = doc! { ID: rows_of(*owner, None) };
                self.collections.execute(WriteCommand::delete(NOTICES, &rows)?).await?;
            }
        }
        Ok(())
    }
}
