//! The bulk changes that undo operations, so that pages can say which are undone.

use polynym_client::Client;
use polynym_proto::v1::ListBulkChangesRequest;

use super::Time;
use super::bulk::BulkView;

/// The latest bulk changes that are read.
const LATEST: i32 = 25;

/// The latest bulk changes of a tenant; none if they cannot be read now.
pub async fn latest_bulk_changes(client: &Client) -> Option<Vec<BulkView>> {
    let request = ListBulkChangesRequest { page_size: LATEST, ..Default::default() };
    let answer = client.registry().list_bulk_changes(request).await.ok()?;
    Some(answer.bulk_changes.iter().map(BulkView::of).collect())
}

/// The undoings among the latest bulk changes, the latest first.
#[derive(Clone, Debug, Default)]
pub struct Undoings(Vec<BulkView>);

impl Undoings {
    /// Reads them. Empty if they cannot be read now: pages then offer to undo, which finds nothing.
    pub async fn read(client: &Client) -> Self {
        Self::among(latest_bulk_changes(client).await.unwrap_or_default())
    }

    /// Those among bulk changes, the latest first.
    pub fn among(changes: impl IntoIterator<Item = BulkView>) -> Self {
        let undoes = |bulk: &BulkView| !bulk.undone.is_empty() && !bulk.is_dry_run;
        Self(changes.into_iter().filter(undoes).collect())
    }

    /// The latest one of an operation.
    pub fn of(&self, operation: &str) -> Option<&BulkView> {
        self.0.iter().find(|bulk| bulk.undone == operation)
    }

    /// The latest one of a bulk change, unless that was resumed since.
    pub fn of_bulk_change(&self, bulk: &BulkView) -> Option<&BulkView> {
        let at = |time: &Option<Time>| time.as_ref().map(|time| time.iso.clone());
        self.of(&bulk.id).filter(|undoing| at(&undoing.created) >= at(&bulk.ended))
    }
}
