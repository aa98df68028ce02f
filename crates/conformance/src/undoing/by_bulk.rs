//! Undoings by a bulk change, which do what UndoOperation does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use polynym_directory::{
    BulkAction, BulkBlocker, BulkChange, BulkState, BulkUsers, StartBulkChange,
};

use super::check::Answer;
use super::scene::History;
use crate::fixture::assertions::equal;
use crate::fixture::factory::Failure;

impl History<'_> {
    /// Undoes an operation by a bulk change, after its dry run, which tells the same unless changes
    /// without events are met. Compares that with the dry run of the call.
    pub async fn undo_by_bulk(
        &mut self,
        operation: &str,
        dry: &Answer,
        is_loose: bool,
    ) -> Result<Answer, Failure> {
        let tried = self.run_bulk(operation, true).await?;
        equal(&self.read_users().await?, &self.users, "the users after a dry run in bulk")?;
        let done = self.run_bulk(operation, false).await?;
        self.tally.by_bulk += 1;
        if !is_loose {
            equal(&tried.counts, &done.counts, "what the dry run in bulk counts")?;
            equal(&tried.failures, &done.failures, "whom it names")?;
            equal(&tried.blockers, &done.blockers, "what it names as to be undone first")?;
            equal(&blocked(&done.blockers), &named(dry), "what the call names")?;
        }
        let kept = done.failures.iter().map(|failure| (failure.user, failure.reason.clone()));
        Ok(Answer {
            reverted: done.counts.changed,
            kept: kept.collect(),
            blockers: dry.blockers.clone(),
        })
    }

    async fn run_bulk(&self, operation: &str, dry_run: bool) -> Result<BulkChange, Failure> {
        self.set_clock();
        let id = format!("undo-{}", self.f.ids.next_id());
        let context = self.directory.context(self.tenant.clone(), "admin", "StartBulkChange", "");
        let request = StartBulkChange {
            id: &id,
            users: BulkUsers::Matching(""),
            action: BulkAction::Undo(operation.to_owned()),
            dry_run,
        };
        self.directory.start_bulk_change(context.clone().into(), request).await?;
        let ended = async {
            loop {
                let found = self.directory.bulk_change(&context, &id).await?;
                if found.end_time.is_some() {
                    return Ok::<_, Failure>(found);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let ended = tokio::select! {
            ended = ended => ended?,
            never = self.directory.run_bulk_changes(Arc::new(|_| true)) => match never {},
        };
        equal(&ended.state, &BulkState::Completed, &format!("the end: {}", ended.end_reason))?;
        let found = ended.list.map_or(0, |list| list.total());
        equal(&ended.counts.checked(), &found, "the users that it has met")?;
        self.f.wait_until(self.directory.now().time);
        Ok(ended)
    }
}

/// The operations that are to be undone first, with their users.
fn blocked(blockers: &[BulkBlocker]) -> BTreeMap<String, u64> {
    let mut users = BTreeMap::new();
    for one in blockers {
        *users.entry(one.blocker.operation_id.clone()).or_default() += one.users;
    }
    users
}

fn named(answer: &Answer) -> BTreeMap<String, u64> {
    let mut users = BTreeMap::new();
    for name in answer.blockers.values().flatten() {
        *users.entry(name.clone()).or_default() += 1;
    }
    users
}
