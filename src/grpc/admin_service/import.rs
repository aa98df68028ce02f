//! ImportUsers: a stream of lines in, a stream of progress and rejects out. Several batches of
//! lines run at once and are answered in order. The bytes of waiting lines are bounded.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use tokio::sync::Semaphore;
use tonic::{Status, Streaming};

use crate::grpc::authorization::permitted_tenant;
use crate::grpc::convert::optional_timestamp;
use crate::grpc::policies;
use crate::grpc::status::status;
use polynym_access::{Call, Metric};
use polynym_directory::{
    Directory, Error, Import, ImportOptions, ImportedTenant, Invalid, LineOutcome, OnConflict,
    OnExisting, Reimport, Tenant,
};
use polynym_proto::v1;
use polynym_transport::StreamPermit;
use polynym_transport::rich_status::internal;
use v1::ImportUsersRequest as Line;
use v1::import_users_request::Options;
use v1::user_internals::Hold;

mod batch;
mod line;
mod messages;
mod person_order;
mod report;

use batch::{Keys, LineResult, PendingLine, Repeats, UserLine, Work};
use line::raw_hold;
use messages::{has_content, is_one_record, next_line, next_message};
use person_order::PersonOrder;
use report::{Report, Response};

/// The maximum bytes of the lines of an import in flight.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of lines of a batch: fewer if no more have arrived.
const MAX_BATCH_LINES: usize = 256;
/// The maximum number of batches in flight.
const MAX_BATCHES: usize = 8;
/// The longest that an import is kept open by empty messages alone.
const MAX_EMPTY: Duration = Duration::from_secs(5 * 60);

const OPTIONS_RULE: &str = "must be in the first message only, and alone";
const LINE_RULE: &str = "has one of a user, a tenant_record and an ownerless_hold, and internals \
    only with a user";

pub type Responses = Pin<Box<dyn Stream<Item = Response> + Send>>;

/// Imports the lines that the caller sends. The work that goes on when the caller has left keeps
/// the permit.
pub fn import(
    directory: Arc<Directory>,
    call: Arc<Call>,
    requests: Streaming<Line>,
    permit: Option<StreamPermit>,
) -> Responses {
    Box::pin(stream::once(open(directory, call, requests, permit)).try_flatten())
}

/// Reads the options, and returns the responses to the lines that follow.
async fn open(
    directory: Arc<Directory>,
    call: Arc<Call>,
    mut requests: Streaming<Line>,
    permit: Option<StreamPermit>,
) -> Result<Responses, Status> {
    let first = next_message(&mut requests).await?.unwrap_or_default();
    let is_first = !has_content(&first);
    let message =
        first.options.filter(|_| is_first).ok_or_else(|| invalid_field("options", OPTIONS_RULE))?;
    let options = import_options(&call, &message)?;
    let import = directory.begin_import(&call.name, options).map_err(status)?;
    // The call was counted before its tenant was known.
    call.count(Metric::Call { method: call.method(), code: "OK" }, 1);
    let import = Arc::new(import);
    let report = Report::new(import.clone(), call.name.clone(), message.tenant);
    let reader = LineReader {
        import: import.clone(),
        call,
        requests,
        byte_permits: Arc::new(Semaphore::new(MAX_BYTES)),
        last_line: i64::MIN,
        repeats: Repeats::default(),
        keys: Keys::default(),
        order: Arc::default(),
    };
    let lines = stream::try_unfold(reader, |mut reader| async move {
        Ok(reader.next().await?.map(|line| (line, reader)))
    });
    let results = lines
        .ready_chunks(MAX_BATCH_LINES)
        .map(move |lines| batch::import_batch(import.clone(), lines, permit.clone()))
        .buffered(MAX_BATCHES);

    Ok(Box::pin(reported(results, report)))
}

/// The responses of a report on these results. Nothing follows an error.
fn reported(
    results: impl Stream<Item = Vec<LineResult>> + Send + 'static,
    report: Report,
) -> impl Stream<Item = Response> + Send {
    let state = (Box::pin(results), Some(report));
    let responses = stream::unfold(state, |(mut results, report)| async move {
        let mut report = report?;
        let responses = match results.next().await {
            Some(results) => report.responses(results),
            None => vec![report.orphans().await?],
        };
        let report = Some(report).filter(|_| responses.iter().all(Result::is_ok));
        Some((stream::iter(responses), (results, report)))
    });
    responses.flatten()
}

fn import_options(call: &Call, message: &Options) -> Result<ImportOptions, Status> {
    let on_conflict = match v1::OnConflict::try_from(message.on_conflict) {
        Ok(v1::OnConflict::Unspecified | v1::OnConflict::Reject) => OnConflict::Reject,
        Ok(v1::OnConflict::SkipIdentity) => OnConflict::SkipIdentity,
        Err(_) => return Err(invalid_field("options.on_conflict", "is unknown")),
    };
    let on_existing = match v1::OnExisting::try_from(message.on_existing) {
        Ok(v1::OnExisting::Unspecified | v1::OnExisting::Reject) => OnExisting::Reject,
        Ok(v1::OnExisting::Skip) => OnExisting::Skip,
        Ok(v1::OnExisting::Update) => OnExisting::Update,
        Ok(v1::OnExisting::Replace) => OnExisting::Replace,
        Ok(v1::OnExisting::Fill) => OnExisting::Fill,
        Err(_) => return Err(invalid_field("options.on_existing", "is unknown")),
    };
    let reimport = Reimport::parse(on_existing, &message.fields, &message.key).map_err(status)?;
    let tenant_name = Some(&message.tenant).filter(|name| !name.is_empty());
    Ok(ImportOptions {
        tenant: tenant_name.map(|name| permitted_tenant(call, name)).transpose()?,
        on_conflict,
        reimport: Arc::new(reimport),
        dry_run: message.validate_only,
        sequential_ids: message.sequential_ids,
        reason: call.purpose().reason.clone(),
        operation_id: call.purpose().operation_id.clone(),
    })
}

fn invalid_field(field: &str, message: &str) -> Status {
    status(Error::invalid(Invalid::Field, field, message))
}

/// Reads lines as they arrive.
struct LineReader {
    import: Arc<Import>,
    call: Arc<Call>,
    requests: Streaming<Line>,
    byte_permits: Arc<Semaphore>,
    last_line: i64,
    repeats: Repeats,
    keys: Keys,
    order: Arc<PersonOrder>,
}

impl LineReader {
    /// The next line; none at the end.
    async fn next(&mut self) -> Result<Option<PendingLine>, Status> {
        let next = next_line(&mut self.requests, MAX_EMPTY).await?;
        let Some(message) = next else { return Ok(None) };
        if message.options.is_some() {
            return Err(invalid_field("options", OPTIONS_RULE));
        }
        if message.line <= self.last_line {
            return Err(invalid_field("line", "must be higher than the previous line's"));
        }
        self.last_line = message.line;
        self.line(message).await.map(Some)
    }

    async fn line(&mut self, message: Line) -> Result<PendingLine, Status> {
        let bytes = message.encoded_len().clamp(1, MAX_BYTES);
        let number = message.line;
        if !is_one_record(&message) {
            let error = Error::invalid(Invalid::Field, "line", LINE_RULE);
            return Ok(PendingLine { number, work: Work::Done(LineOutcome::rejected(error)) });
        }
        let tenant_name = None
            .or(message.user.as_ref().map(|user| &user.tenant))
            .or(message.tenant_record.as_ref().map(|tenant| &tenant.tenant))
            .or(message.ownerless_hold.as_ref().map(|hold| &hold.tenant));
        let tenant = match self.import.tenant(tenant_name.map_or("", String::as_str)) {
            Ok(tenant) => tenant,
            Err(error) => {
                return Ok(PendingLine { number, work: Work::Done(LineOutcome::rejected(error)) });
            }
        };
        permitted_tenant(&self.call, tenant.as_str())?;
        if let Some(hold) = message.ownerless_hold {
            let outcome = self.hold(tenant, hold.hold.unwrap_or_default()).await?;
            return Ok(PendingLine { number, work: Work::Done(outcome) });
        }
        let Some(user) = message.user else {
            let record = message.tenant_record.unwrap_or_default();
            let outcome = self.tenant(tenant, &record).await?;
            return Ok(PendingLine { number, work: Work::Done(outcome) });
        };

        if let Some(name) = self.import.key_attribute()
            && let Err(error) = self.keys.add(&tenant, &user, name)
        {
            return Ok(PendingLine { number, work: Work::Done(LineOutcome::rejected(error)) });
        }
        let permit = self
            .byte_permits
            .clone()
            .acquire_many_owned(bytes as u32)
            .await
            .map_err(|_| internal())?;
        let place = self.order.take(&tenant, &user).await;
        // A line that may change its user is another one after a line that changed it, too.
        let changes = self.import.changes_users();
        let mark = self.repeats.mark(&tenant, &user, (number, changes));
        let internals = message.internals;
        let line = UserLine { tenant, user, internals, mark, _permit: permit, _place: place };
        Ok(PendingLine { number, work: Work::User(Box::new(line)) })
    }

    async fn hold(&self, tenant: Tenant, hold: Hold) -> Result<LineOutcome, Status> {
        match raw_hold(&hold) {
            Ok(hold) => self.import.hold(tenant, &hold).await.map_err(status),
            Err(error) => Ok(LineOutcome::rejected(error)),
        }
    }

    /// Imports a tenant before the next lines are read.
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
