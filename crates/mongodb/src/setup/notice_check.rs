//! The check of notices for `store verify`: each can be read, and has an owner that exists.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use locality_uuid::LocalityId;
use mongodb::bson::RawDocument;
use tokio::time::sleep;

use crate::client::error::Fault;
use crate::inbox::row::{NOTICE, read_entry, read_id, row_id};
use crate::schema::bson::{as_id, id_text, read_fields, required};
use crate::schema::fields::NOTICES;
use crate::setup::integrity::IntegritySession;
use crate::setup::walks::Part;
use polynym_directory::Error;
use polynym_store_common::integrity::NoticeFault;

/// The wait before rows without an owner are read again: a purge or a delivery may remove them.
const REMOVAL_TIME: Duration = Duration::from_secs(2);

/// The row of a notice.
struct Row {
    owner: LocalityId,
    position: u128,
    notice: LocalityId,
}

impl Row {
    /// The row, or the id as text of one that is no notice.
    fn read(row: &RawDocument) -> Result<Self, String> {
        let read = || {
            read_entry(row, true)?;
            let [notice] = read_fields(row, [NOTICE])?;
            let (owner, position) = read_id(row)?;
            Ok::<_, Fault>(Self { owner, position, notice: required(NOTICE, notice, as_id)? })
        };
        read().map_err(|_| id_text(row))
    }
}

impl IntegritySession {
    /// The faults of all notices.
    pub(super) fn all_notice_faults(&self) -> BoxStream<'_, Result<Option<NoticeFault>, Error>> {
        let notices = self.collections.collection(NOTICES);
        let rows = self.walk_batches(&notices, Part::default(), Row::read);
        let faults = rows.and_then(|rows| self.faults_of_notices(rows));
        faults.map_ok(|faults| stream::iter(faults.into_iter().map(Ok))).try_flatten().boxed()
    }

    async fn faults_of_notices(
        &self,
        rows: Vec<Result<Row, String>>,
    ) -> Result<Vec<Option<NoticeFault>>, Error> {
        let mut owners: Vec<_> = rows.iter().flatten().map(|row| row.owner).collect();
        owners.dedup();
        let present = self.collections.present(&owners).await?;
        let is_stray = |row: &&Row| !present.contains(&row.owner);
        let strays =
            rows.iter().flatten().filter(is_stray).map(|row| row_id(row.owner, row.position));
        let strays: Vec<_> = strays.collect();
        let mut left = HashSet::new();
        if !strays.is_empty() {
            sleep(REMOVAL_TIME).await;
            left.extend(self.collections.existing_rows(strays).await?);
        }
        let fault = |row: Result<Row, String>| match row {
            Ok(row) => {
                let is_left = left.contains(&(row.owner, row.position));
                is_left.then_some(NoticeFault::Ownerless(row.owner, row.notice))
            }
            Err(id) => Some(NoticeFault::Unreadable(id)),
        };
        Ok(rows.into_iter().map(fault).collect())
    }

    /// Removes the notices of users who do not exist.
    pub(super) async fn repair_each_notice(&self, faults: &[NoticeFault]) -> Result<(), Fault> {
        let owner = |fault: &NoticeFault| match fault {
            NoticeFault::Ownerless(owner, _) => Some(*owner),
            _ => None,
        };
        let owners: Vec<_> = faults.iter().filter_map(owner).collect();
        self.collections.delete_inboxes_without_owner(&owners).await
    }
}
