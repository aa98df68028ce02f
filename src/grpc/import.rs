//! ImportUsers: a stream of lines in, a stream of progress and rejects out. Lines are worked on in
//! batches, several at once, and answered in their order; how many bytes of them wait is bounded.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, future, stream};
use prost::Message;
use tokio::sync::Semaphore;
use tonic::{Status, Streaming};

use super::authorization::permitted_tenant;
use super::convert::optional_timestamp;
use super::import_batch::{self, LineResult, PendingLine, UserLine, Work};
use super::import_line::raw_hold;
use super::policies;
use super::status::{reason, status};
use crate::access::{Call, Metric};
use crate::directory::error::{Error, Invalid};
use crate::directory::model::imported_user::OnConflict;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::ImportedTenant;
use crate::directory::service::Directory;
use crate::directory::service::transfer::import::{Import, ImportOptions, LineOutcome};
use crate::proto::v1;
use v1::ImportUsersRequest as Line;
use v1::import_users_request::Options;
use v1::import_users_response::{Progress, Reject};
use v1::user_internals::Hold;

/// The bytes of lines that one import may have under way.
const BYTES: usize = 8 << 20;
/// Lines that are worked on and answered together, at most: fewer where no more have come.
const BATCH: usize = 256;
/// Batches that are worked on at once.
const BATCHES: usize = 8;

pub type Responses = Pin<Box<dyn Stream<Item = Result<v1::ImportUsersResponse, Status>> + Send>>;

/// Imports what the caller sends.
pub fn import(
    directory: Arc<Directory>,
    caller: Arc<Call>,
    requests: Streaming<Line>,
) -> Responses {
    Box::pin(stream::once(open(directory, caller, requests)).try_flatten())
}

/// Reads the options, and returns the answers to the lines that follow.
async fn open(
    directory: Arc<Directory>,
    caller: Arc<Call>,
    mut requests: Streaming<Line>,
) -> Result<Responses, Status> {
    let first = requests.message().await?;
    let missing = || fault("options", "must be in the first message, and there alone");
    let message = first.and_then(|first| first.options).ok_or_else(missing)?;
    let options = options(&caller, &message)?;
    let import = directory.begin_import(&caller.name, options).map_err(status)?;
    // The call was counted before its tenant was known.
    caller.count(Metric::Call { method: "ImportUsers", code: "OK" }, 1);
    let log = SummaryLog { caller: caller.name.clone(), tenant: message.tenant, done: None };

    let lines = LineReader {
        import: Arc::new(import),
        caller,
        requests,
        room: Arc::new(Semaphore::new(BYTES)),
        last: i64::MIN,
    };
    let import = lines.import.clone();
    let lines = stream::try_unfold(lines, |mut lines| async move {
        Ok(lines.next().await?.map(|line| (line, lines)))
    });
    let results = lines
        .ready_chunks(BATCH)
        .map(move |lines| import_batch::carry_out(import.clone(), lines))
        .buffered(BATCHES);

    let mut summary = (Progress::default(), log);
    let responses = results.flat_map(move |results| stream::iter(answers(&mut summary, results)));
    // What follows an error is not answered.
    let mut has_failed = false;
    Ok(Box::pin(responses.take_while(move |answer| {
        future::ready(!std::mem::replace(&mut has_failed, answer.is_err()))
    })))
}

fn options(caller: &Call, message: &Options) -> Result<ImportOptions, Status> {
    let on_conflict = match v1::OnConflict::try_from(message.on_conflict) {
        Ok(v1::OnConflict::Unspecified | v1::OnConflict::Reject) => OnConflict::Reject,
        Ok(v1::OnConflict::SkipIdentity) => OnConflict::SkipIdentity,
        Err(_) => return Err(fault("options.on_conflict", "is none of the known ways")),
    };
    let tenant = Some(&message.tenant).filter(|tenant| !tenant.is_empty());
    Ok(ImportOptions {
        tenant: tenant.map(|tenant| permitted_tenant(caller, tenant)).transpose()?,
        on_conflict,
        dry_run: message.validate_only,
        sequential_ids: message.sequential_ids,
    })
}

fn fault(field: &str, message: &str) -> Status {
    status(Error::invalid(Invalid::Field, field, message))
}

/// The lines as they come.
struct LineReader {
    import: Arc<Import>,
    caller: Arc<Call>,
    requests: Streaming<Line>,
    room: Arc<Semaphore>,
    last: i64,
}

impl LineReader {
    /// The next line; none at the end.
    async fn next(&mut self) -> Result<Option<PendingLine>, Status> {
        loop {
            let Some(message) = self.requests.message().await? else { return Ok(None) };
            let has_content = message.user.is_some()
                || message.tenant_record.is_some()
                || message.ownerless_hold.is_some();
            if !has_content {
                if message.options.is_some() {
                    return Err(fault("options", "must be in the first message, and there alone"));
                }
                continue;
            }
            if message.line <= self.last {
                return Err(fault("line", "must be higher than that of the line before"));
            }
            self.last = message.line;
            return self.line(message).await.map(Some);
        }
    }

    async fn line(&mut self, message: Line) -> Result<PendingLine, Status> {
        let bytes = message.encoded_len().clamp(1, BYTES);
        let number = message.line;
        let own = message.user.as_ref().map(|user| &user.tenant);
        let own = own.or(message.tenant_record.as_ref().map(|tenant| &tenant.tenant));
        let own = own.or(message.ownerless_hold.as_ref().map(|hold| &hold.tenant));
        let tenant = match self.import.tenant(own.map_or("", String::as_str)) {
            Ok(tenant) => tenant,
            Err(error) => {
                return Ok(PendingLine { number, work: Work::Done(LineOutcome::rejected(error)) });
            }
        };
        permitted_tenant(&self.caller, tenant.as_str())?;
        if let Some(hold) = message.ownerless_hold {
            let outcome = self.hold(tenant, hold.hold.unwrap_or_default()).await?;
            return Ok(PendingLine { number, work: Work::Done(outcome) });
        }
        let Some(user) = message.user else {
            let record = message.tenant_record.unwrap_or_default();
            let outcome = self.tenant(tenant, &record).await?;
            return Ok(PendingLine { number, work: Work::Done(outcome) });
        };

        let room = self.room.clone().acquire_many_owned(bytes as u32).await;
        let room = room.map_err(|_| crate::transport::rich_status::internal())?;
        let line = UserLine { tenant, user, internals: message.internals, _room: room };
        Ok(PendingLine { number, work: Work::User(Box::new(line)) })
    }

    async fn hold(&self, tenant: Tenant, hold: Hold) -> Result<LineOutcome, Status> {
        match raw_hold(&hold) {
            Ok(hold) => self.import.hold(tenant, &hold).await.map_err(status),
            Err(error) => Ok(LineOutcome::rejected(error)),
        }
    }

    /// Imports a tenant before the lines that follow are read.
    async fn tenant(&self, tenant: Tenant, record: &v1::Tenant) -> Result<LineOutcome, Status> {
        match imported_tenant(record) {
            Ok(imported) => self.import.tenant_record(tenant, imported).await.map_err(status),
            Err(error) => Ok(LineOutcome::rejected(error)),
        }
    }
}

fn imported_tenant(record: &v1::Tenant) -> Result<ImportedTenant, Error> {
    let mask = ["*".to_owned()];
    let time = |name, time| optional_timestamp(&format!("tenant_record.{name}"), time);
    Ok(ImportedTenant {
        policies: policies::update(record.policies.as_ref(), Some(&mask))?,
        create_time: time("create_time", record.create_time.as_ref())?,
        update_time: time("update_time", record.update_time.as_ref())?,
    })
}

type Answer = Result<v1::ImportUsersResponse, Status>;

/// The message for results that have come, and the error that ends the import if there is one.
fn answers((progress, log): &mut (Progress, SummaryLog), results: Vec<LineResult>) -> Vec<Answer> {
    let (mut rejects, mut error) = (Vec::new(), None);
    for result in results {
        match result {
            Ok((line, outcome)) => count(progress, line, outcome, &mut rejects),
            Err(status) => {
                error = Some(Err(status));
                break;
            }
        }
    }

    log.done = Some(*progress);
    let response = v1::ImportUsersResponse { progress: Some(*progress), rejects };
    std::iter::once(Ok(response)).chain(error).collect()
}

fn count(progress: &mut Progress, line: i64, outcome: LineOutcome, rejects: &mut Vec<Reject>) {
    progress.line = line;
    progress.lines += 1;
    match outcome.is_new {
        Some(true) => progress.created += 1,
        Some(false) => progress.existing += 1,
        None => progress.rejected += 1,
    }

    let skipped = outcome.is_new.is_some();
    progress.skipped += if skipped { outcome.rejects.len() as i64 } else { 0 };
    rejects.extend(outcome.rejects.into_iter().map(|reject| Reject {
        line,
        reason: reason(&reject.error).to_owned(),
        message: reject.error.to_string(),
        identity_index: reject.identity.map(|index| index as i32),
        skipped,
    }));
}

/// Logs an import once it has ended, whatever ended it.
struct SummaryLog {
    caller: String,
    tenant: String,
    done: Option<Progress>,
}

impl Drop for SummaryLog {
    fn drop(&mut self) {
        let Progress { lines, created, existing, rejected, .. } = self.done.unwrap_or_default();
        tracing::info!(
            caller = self.caller,
            tenant = self.tenant,
            lines,
            created,
            existing,
            rejected,
            "import"
        );
    }
}
