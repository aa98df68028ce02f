//! The responses of an import: its progress, and its rejects. Merged users may precede their
//! primaries, so those whose primary is missing are reported at the end.

use std::collections::VecDeque;
use std::sync::Arc;

use locality_uuid::LocalityId;
use prost::Message;
use tonic::Status;

use super::batch::LineResult;
use crate::grpc::status::status;
use polynym_directory::{
    Effect, Error, Import, LIST_BYTES, LineOutcome, MergedLine, PageLimit, Tenant,
    encoded::event::changes_message, stores::MAX_FRAME_BYTES,
};
use polynym_proto::v1;
use v1::import_users_response::{Change, Progress, Reject};

/// The merged users that are looked up at once.
const LOOKUP_BATCH: usize = 100;
/// The most merged users whose primaries are looked up at the end.
const MAX_MERGED: usize = 100_000;

/// A response, or the error that ends the import.
pub type Response = Result<v1::ImportUsersResponse, Status>;

/// The report of an import. Logs a summary when it is dropped.
pub struct Report {
    import: Arc<Import>,
    caller: String,
    /// The tenant of all lines; empty if each line names its own.
    tenant: String,
    progress: Progress,
    merged: VecDeque<MergedUsers>,
    merged_count: usize,
}

/// The lines of merged users of one tenant.
struct MergedUsers {
    tenant: Tenant,
    users: VecDeque<(i64, LocalityId)>,
}

impl Report {
    pub fn new(import: Arc<Import>, caller: String, tenant: String) -> Self {
        let (progress, merged) = (Progress::default(), VecDeque::new());
        Self { import, caller, tenant, progress, merged, merged_count: 0 }
    }

    /// The messages for some results, each with all rejects of its lines, and the error that ends
    /// the import, if any.
    pub fn responses(&mut self, results: Vec<LineResult>) -> Vec<Response> {
        let (mut responses, mut parts, mut limit) = (Vec::new(), Parts::default(), page_limit());
        let mut error = None;
        for result in results {
            let (line, outcome) = match result {
                Ok(result) => result,
                Err(status) => {
                    error = Some(Err(status));
                    break;
                }
            };
            let of_line = Parts {
                rejects: rejects_of(line, &outcome),
                changes: self.change(line, &outcome).into_iter().collect(),
            };
            let bytes = of_line.bytes();
            if !limit.take(bytes) {
                responses.push(Ok(self.response(std::mem::take(&mut parts))));
                limit = page_limit();
                let _ = limit.take(bytes);
            }
            self.count(line, outcome, of_line.rejects.len());
            parts.extend(of_line);
        }
        responses.push(Ok(self.response(parts)));
        responses.extend(error);
        responses
    }

    /// A message with merged users whose primary is missing. None if there are no more.
    pub async fn orphans(&mut self) -> Option<Response> {
        while let Some(next) = self.merged.front_mut() {
            let batch: Vec<_> = next.users.iter().take(LOOKUP_BATCH).copied().collect();
            let ids: Vec<_> = batch.iter().map(|(_, user)| *user).collect();
            if ids.is_empty() {
                self.merged.pop_front();
                continue;
            }
            let orphans = match self.import.are_orphans(&next.tenant, &ids).await {
                Ok(orphans) => orphans,
                Err(error) => return Some(Err(status(error))),
            };
            // An answer that is too large omits the last users, but never the first.
            next.users.drain(..orphans.len().clamp(1, ids.len()));
            let found = batch.into_iter().zip(orphans).filter(|(_, is_orphan)| *is_orphan);
            let rejects: Vec<_> = found.map(|((line, user), _)| orphan(line, user)).collect();
            if !rejects.is_empty() {
                self.progress.orphans += rejects.len() as i64;
                let parts = Parts { rejects, ..Parts::default() };
                return Some(Ok(self.response(parts)));
            }
        }
        None
    }

    fn response(&self, Parts { rejects, changes }: Parts) -> v1::ImportUsersResponse {
        v1::ImportUsersResponse { progress: Some(self.progress), rejects, changes }
    }

    /// The change that a line would make; none unless the import is a dry run.
    fn change(&self, line: i64, outcome: &LineOutcome) -> Option<Change> {
        let Some(Effect::Changed(changes)) = &outcome.effect else { return None };
        let user_id = outcome.user?.to_string();
        let changes = Some(changes_message(changes));
        self.import.is_dry_run().then_some(Change { line, user_id, changes })
    }

    fn count(&mut self, line: i64, outcome: LineOutcome, rejects: usize) {
        let progress = &mut self.progress;
        progress.line = line;
        progress.lines += 1;
        match outcome.effect {
            Some(Effect::Created) => progress.created += 1,
            Some(Effect::Restored) => progress.restored += 1,
            Some(Effect::Changed(_)) => progress.changed += 1,
            Some(Effect::Unchanged) => progress.existing += 1,
            None => progress.rejected += 1,
        }

        progress.skipped += if outcome.effect.is_some() { rejects as i64 } else { 0 };
        if let Some(merged) = outcome.merged {
            self.add_merged(line, merged);
        }
    }

    fn add_merged(&mut self, line: i64, MergedLine { tenant, user }: MergedLine) {
        if self.merged_count == MAX_MERGED {
            return;
        }
        self.merged_count += 1;
        match self.merged.back_mut().filter(|last| last.tenant == tenant) {
            Some(last) => last.users.push_back((line, user)),
            None => self.merged.push_back(MergedUsers { tenant, users: [(line, user)].into() }),
        }
    }
}

/// The rejects and changes of a message.
#[derive(Default)]
struct Parts {
    rejects: Vec<Reject>,
    changes: Vec<Change>,
}

impl Parts {
    /// The size in a message, at most.
    fn bytes(&self) -> usize {
        let rejects = self.rejects.iter().map(|reject| reject.encoded_len() + MAX_FRAME_BYTES);
        let changes = self.changes.iter().map(|change| change.encoded_len() + MAX_FRAME_BYTES);
        rejects.chain(changes).sum()
    }

    fn extend(&mut self, other: Self) {
        self.rejects.extend(other.rejects);
        self.changes.extend(other.changes);
    }
}

/// The limit of the rejects and changes of a message.
const fn page_limit() -> PageLimit {
    PageLimit::new(usize::MAX, LIST_BYTES)
}

/// The reject of a line, or of its skipped identities.
fn rejects_of(line: i64, outcome: &LineOutcome) -> Vec<Reject> {
    let rejects = outcome.rejects.iter().map(|reject| Reject {
        line,
        reason: reject.error.reason().to_owned(),
        message: reject.error.to_string(),
        identity_index: reject.identity.map(|index| index as i32),
        skipped: outcome.effect.is_some(),
        owner: owner(&reject.error),
    });
    rejects.collect()
}

/// The reject of a merged user whose primary is missing.
fn orphan(line: i64, user: LocalityId) -> Reject {
    let error = Error::PrimaryMissing { user };
    Reject {
        line,
        reason: error.reason().to_owned(),
        message: error.to_string(),
        identity_index: None,
        skipped: true,
        owner: String::new(),
    }
}

/// The user who has the identity that an error is about.
fn owner(error: &Error) -> String {
    match error {
        Error::IdentityTaken { owner, .. } => owner.to_string(),
        _ => String::new(),
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let Progress { lines, created, restored, changed, existing, .. } = self.progress;
        let Progress { rejected, orphans, .. } = self.progress;
        tracing::info!(
            caller = self.caller,
            tenant = self.tenant,
            lines,
            created,
            restored,
            changed,
            existing,
            rejected,
            orphans,
            "import"
        );
    }
}
