//! Sending the lines of a file, as a dry run or an import.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use polynym_client::Client;
use polynym_client::purpose::{OPERATION_ID, encode};
use polynym_import::{Format, Import, Observer, ReadOptions, Rejects, SendError, Target};
use polynym_proto::v1::import_users_response::{Change, Progress};
use polynym_table::{Definitions, Given};
use tonic::metadata::MetadataMap;

use super::inspecting::read;
use super::job::{Job, JobKind};
use super::kept_mappings::KeptMappings;
use super::options::ImportOptions;
use super::outcome::{Outcome, RejectReason};
use super::reasons::words;
use super::settings::Settings;
use super::temp_file::{Appender, KeptFile};
use super::upload::Upload;
use super::{advice, shown};

/// The time to wait after a stop for the answers to sent lines.
const STOP_GRACE: Duration = Duration::from_secs(60);

/// The import of a file: the file, the options of the call, and where rejects go.
pub struct Plan {
    /// A client with the rights of the session.
    pub client: Client,
    pub options: ImportOptions,
    /// The options for reading a table; none for lines of JSON.
    pub given: Option<Given>,
    /// The file for rejects.
    pub rejects: Arc<KeptFile>,
    /// The id of the import in the history.
    pub operation_id: String,
}

/// Sends the lines of a file, and ends the work.
pub async fn transfer(upload: Arc<Upload>, job: Arc<Job>, plan: Plan) {
    let _end = EndOnDrop(job.clone());
    let outcome = send(&upload, &job, plan).await;
    upload.update(|state| {
        if outcome.is_dry_run {
            state.dry_run = Some(Arc::new(outcome));
        } else {
            state.import = Some(Arc::new(outcome));
        }
    });
}

/// Reads a table by other settings, and makes a dry run by them. Ends the work.
pub async fn read_and_check(
    upload: Arc<Upload>,
    job: Arc<Job>,
    settings: Settings,
    definitions: Definitions,
    plan: Plan,
) {
    let _end = EndOnDrop(job.clone());
    read(&upload, &job, settings, definitions.clone(), KeptMappings::default()).await;
    let state = upload.snapshot();
    let is_read = matches!(state.reading, Some(Ok(_))) && !job.stop.is_set();
    let Ok(mut given) = state.settings.map_file(&state.names).given() else { return };
    given.options.definitions = definitions;
    if is_read {
        transfer(upload, job, Plan { given: Some(given), ..plan }).await;
    }
}

/// Ends the work, however its task ends.
struct EndOnDrop(Arc<Job>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

async fn send(upload: &Arc<Upload>, job: &Arc<Job>, plan: Plan) -> Outcome {
    let is_dry_run = job.kind == JobKind::DryRun;
    let file = plan.rejects.clone();
    let rejects = Arc::new(Rejects::new(move || {
        Ok(Box::new(Appender(file.clone())) as Box<dyn Write + Send>)
    }));
    let mut headers = MetadataMap::new();
    if let Ok(id) = encode(&plan.operation_id) {
        headers.insert(OPERATION_ID, id);
    }
    let key = Some(&plan.options.key).filter(|key| !key.is_empty()).cloned();
    let import = Import {
        options: plan.options.message(&upload.tenant, is_dry_run),
        headers,
        format: match (plan.given, upload.export) {
            (Some(given), _) => Format::Table { given: Box::new(given), key },
            (None, Some(format)) => {
                let (options, target) = (ReadOptions::default(), Target::default());
                Format::Export { format, options, target }
            }
            (None, None) => Format::Lines(Target::default()),
        },
        rejects: rejects.clone(),
        grace: STOP_GRACE,
    };
    let outcome = Outcome {
        is_dry_run,
        options: plan.options,
        operation_id: plan.operation_id,
        rejects: Some(plan.rejects),
        ..Outcome::default()
    };
    let mut sending = Sending { job, outcome };
    let source = upload.file.reader(job.stop.clone());
    let sent = import.send(&plan.client, move || Ok(source), job.stop.wait(), &mut sending).await;
    let mut outcome = sending.outcome;
    outcome.was_stopped = job.stop.is_set();
    match sent.outcome {
        Ok(findings) => outcome.tally = findings.tally,
        Err(_) if outcome.was_stopped => {}
        Err(error) => outcome.error = advice(&message(&error)),
    }
    outcome.progress = sent.progress;
    outcome.ended = Some(SystemTime::now());
    outcome.rejected = sent.progress.rejected + sent.rejected_here;
    describe_rejects(&mut outcome, &rejects);
    outcome
}

/// Adds the reasons of the rejects, and those of a table by its columns.
fn describe_rejects(outcome: &mut Outcome, rejects: &Rejects) {
    let reasons = rejects.reasons().into_iter().map(|(name, reason)| RejectReason {
        name: words(&name),
        count: reason.count,
        line: reason.line,
        message: shown(&advice(&reason.message)),
    });
    outcome.reasons = reasons.collect();
    outcome.layout = rejects.layout().cloned();
    if outcome.layout.is_some() {
        outcome.groups = rejects.groups();
    }
}

/// Lines that are being sent.
struct Sending<'j> {
    job: &'j Job,
    outcome: Outcome,
}

impl Observer for Sending<'_> {
    type Error = Infallible;

    fn changed(&mut self, change: &Change) -> Result<(), Infallible> {
        self.outcome.add(change);
        Ok(())
    }

    fn progressed(&mut self, progress: &Progress, bytes: u64) {
        self.job.set(*progress, bytes);
    }
}

/// The text for the cause of an early end.
fn message(error: &SendError<Infallible>) -> String {
    match error {
        SendError::Refused(error) | SendError::Lost(error) if !error.reason().is_empty() => {
            format!("{} ({})", error.message(), error.reason())
        }
        SendError::Refused(error) | SendError::Lost(error) => {
            format!("the connection was lost: {}", error.message())
        }
        error => error.to_string(),
    }
}
