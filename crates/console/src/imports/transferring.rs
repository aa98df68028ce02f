//! Sending the lines of a file, as a dry run or an import.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use polynym_client::purpose::{OPERATION_ID, encode};
use polynym_client::{Answers, Client, Error};
use polynym_import::{Exchange, Format, ReadError, Rejects, Target};
use polynym_proto::v1::ImportUsersResponse;
use polynym_table::{Given, Tally};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Request;

use super::job::{Job, JobKind};
use super::kept_file::{Appender, KeptFile};
use super::options::ImportOptions;
use super::outcome::{Outcome, RejectReason};
use super::stop::Stop;
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

/// The thread that reads the file: the number of its lines, and how a table was read.
type Reader = JoinHandle<Result<(i64, Tally), ReadError>>;

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
    let mut sending = Sending {
        exchange: Exchange::new(rejects),
        job,
        outcome: Outcome {
            is_dry_run,
            options: plan.options.clone(),
            operation_id: plan.operation_id.clone(),
            rejects: Some(plan.rejects.clone()),
            ..Outcome::default()
        },
    };
    let ended = sending.run(upload, &plan).await;
    let Sending { exchange, mut outcome, .. } = sending;
    outcome.was_stopped = job.stop.is_set();
    match ended {
        Ok(tally) => outcome.tally = tally,
        Err(_) if outcome.was_stopped => {}
        Err(error) => outcome.error = advice(&error),
    }
    outcome.progress = exchange.progress;
    outcome.rejected = exchange.progress.rejected + exchange.rejected_here();
    let reasons = exchange.rejects.reasons().into_iter().map(|(name, own)| RejectReason {
        name,
        count: own.count,
        line: own.line,
        message: shown(&advice(&own.message)),
    });
    outcome.reasons = reasons.collect();
    outcome
}

/// Lines that are being sent.
struct Sending<'j> {
    exchange: Exchange,
    job: &'j Job,
    outcome: Outcome,
}

impl Sending<'_> {
    /// Returns how a table was read, or why it ended early.
    async fn run(&mut self, upload: &Arc<Upload>, plan: &Plan) -> Result<Tally, String> {
        let options = plan.options.message(&upload.tenant, self.outcome.is_dry_run);
        let (sender, receiver) = polynym_import::channel();
        let reader = self.exchange.reader(sender, options.clone());
        let format = match plan.given.clone() {
            Some(given) => {
                let key = Some(&plan.options.key).filter(|key| !key.is_empty()).cloned();
                Format::Table { given: Box::new(given), key }
            }
            None => Format::Lines(Target::default()),
        };
        let (file, stop) = (upload.file.clone(), self.job.stop.clone());
        let source = file.reader(stop.clone());
        let reader = tokio::task::spawn_blocking(move || reader.run(source, format));

        let stopped = stop.clone();
        let requests = polynym_import::requests(options, receiver)
            .take_until(async move { stopped.wait().await });
        let mut request = Request::new(requests);
        if let Ok(id) = encode(&plan.operation_id) {
            request.metadata_mut().insert(OPERATION_ID, id);
        }
        let answers = plan.client.admin().import_users(request).await;
        let received = match answers {
            Ok(mut answers) => self.receive(&mut answers, &stop).await,
            Err(error) => Err(message(&error)),
        };
        self.exchange.window.close();
        received?;
        self.finish(reader).await
    }

    /// Receives answers until the end of the stream, or a while after a stop.
    async fn receive(
        &mut self,
        answers: &mut Answers<ImportUsersResponse>,
        stop: &Stop,
    ) -> Result<(), String> {
        tokio::select! {
            received = self.receive_all(answers) => return received,
            () = stop.wait() => {}
        }
        self.exchange.window.close();
        timeout(STOP_GRACE, self.receive_all(answers)).await.unwrap_or(Ok(()))
    }

    async fn receive_all(
        &mut self,
        answers: &mut Answers<ImportUsersResponse>,
    ) -> Result<(), String> {
        while let Some(answer) = answers.message().await.map_err(|error| message(&error))? {
            let bytes = self.exchange.apply(&answer).map_err(|error| error.to_string())?;
            for change in &answer.changes {
                self.outcome.add(change);
            }
            self.job.set(self.exchange.progress, bytes);
        }
        Ok(())
    }

    /// Fails if the file was not read to its end, or the server ended early.
    async fn finish(&self, reader: Reader) -> Result<Tally, String> {
        let read = reader.await.map_err(|error| error.to_string())?;
        let (lines, tally) = read.map_err(|error| match error {
            ReadError::File(error) | ReadError::Mapping(error) => error,
            ReadError::Rejects(error) => format!("the rejects cannot be kept: {error}"),
        })?;
        if lines == 0 {
            return Err("the file is empty".to_owned());
        }
        if !self.exchange.is_complete(lines) {
            return Err("the server ended the import early: import the file again".to_owned());
        }
        Ok(tally)
    }
}

/// The error of the call. Without a reason, the connection broke.
fn message(error: &Error) -> String {
    match error.reason() {
        "" => format!("the connection was lost: {}", error.message()),
        reason => format!("{} ({reason})", error.message()),
    }
}
