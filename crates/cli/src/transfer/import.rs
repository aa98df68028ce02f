//! `polynym import`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use tokio::signal;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::timeout;
use tonic::Request;

use super::arguments::{Ids, Import, OnConflict, OnExisting};
use super::changes::Changes;
use super::inspect;
use super::reader::{self, FileReader};
use super::rejects::{Rejected, Rejects};
use super::report::{Bar, Summary};
use super::table;
use super::target::Target;
use super::window::Window;
use crate::client::Session;
use crate::client::connection::root_cause;
use crate::failure::Failure;
use polynym_client::{Answers, Error};
use polynym_proto::v1;
use polynym_table::{Given, Tally};
use v1::import_users_request::Options;
use v1::import_users_response::Progress;
use v1::{ImportUsersRequest, ImportUsersResponse};

/// Requests that wait between the reader and the connection.
const QUEUE_SIZE: usize = 256;
/// The idle time after which an empty message keeps the stream open.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
/// The time to wait after Ctrl-C for the answers to sent lines.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(15);
const RESUME_ADVICE: &str = "run the same command again to continue; it imports no user twice";

pub async fn run(command: Import) -> Result<(), Failure> {
    if command.table.inspect {
        return inspect::run(&command);
    }
    import(command).await
}

async fn import(command: Import) -> Result<(), Failure> {
    if command.matches.is_some() && command.on_existing == OnExisting::Reject {
        let advice = "it finds users who exist: add --on-existing update, replace or skip";
        return Err(Failure::Usage(format!("--match: {advice}")));
    }
    let given = table::given(&command.table)?;
    let session = Session::open_operation(&command.settings, "import").await?;
    let given = with_types(given, &command, &session).await?;
    let rejects = Arc::new(Rejects::new(rejects_path(&command), &command.file)?);
    let (dry_run, names_rejects_file) = (command.dry_run, command.rejects.is_some());
    let Transferred { outcome, progress, rejected_here, changes } =
        transfer(command, given, &session, &rejects).await?;
    rejects.finish()?;
    // Keeps a file that --rejects names: it may be something else.
    if outcome.is_ok() && !names_rejects_file {
        rejects.remove_older()?;
    }

    match outcome {
        Ok(tally) => {
            let (changes, json) = (changes.finish()?, session.json());
            let (rejects, operation_id) = (&rejects, session.operation_id());
            let summary = Summary {
                progress,
                rejected_here,
                rejects,
                tally,
                operation_id,
                changes,
                dry_run,
                json,
            };
            summary.print()
        }
        Err(failure @ (Failure::Usage(_) | Failure::Config(_))) => Err(failure),
        Err(failure) => {
            eprintln!("interrupted after {} lines: {RESUME_ADVICE}", progress.lines);
            if progress.created + progress.changed > 0 {
                eprintln!("--operation-id {} makes both one operation", session.operation_id());
            }
            Err(failure)
        }
    }
}

/// The result of sending a file.
struct Transferred {
    /// The counts of the cells of a table, or the failure that ended the import.
    outcome: Result<Tally, Failure>,
    progress: Progress,
    /// Lines that the reader rejected, without sending them.
    rejected_here: i64,
    changes: Changes,
}

/// Sends the lines of the file, and receives the answers.
async fn transfer(
    command: Import,
    given: Given,
    session: &Session,
    rejects: &Arc<Rejects>,
) -> Result<Transferred, Failure> {
    let window = Arc::new(Window::default());
    let rejected_count = Arc::new(AtomicI64::new(0));
    let bar = Bar::new(&command.file);
    let (sender, receiver) = mpsc::channel(QUEUE_SIZE);
    let options = options(session, &command);
    let changes = Changes::new(command.changes.as_deref())?;
    let reader = FileReader {
        window: window.clone(),
        rejects: rejects.clone(),
        requests: sender,
        rejected: rejected_count.clone(),
        target: Target::new(&command, session.tenant()),
        options: options.clone(),
    };
    let reader_thread = spawn(reader, command, given)?;

    let progress = Progress::default();
    let mut exchange = Exchange { window: &window, rejects, bar: &bar, progress, changes };
    let end = exchange.run(session, options, receiver).await;
    let Exchange { progress, changes, .. } = exchange;
    window.close();
    bar.clear();
    let outcome = match end {
        // The reader may block on its input: do not wait for it.
        Ok(End::Interrupted) => Err(Failure::Interrupted),
        Ok(End::Complete) => finish(reader_thread, &rejected_count, &progress),
        Err(failure) => Err(failure),
    };
    let rejected_here = rejected_count.load(Ordering::Relaxed);
    Ok(Transferred { outcome, progress, rejected_here, changes })
}

/// Adds the types of the tenant's attributes for a table. Fails before the first row if there is no
/// tenant.
async fn with_types(
    mut given: Given,
    command: &Import,
    session: &Session,
) -> Result<Given, Failure> {
    if !reader::is_table(command) {
        return Ok(given);
    }
    let tenant = session.find_tenant().await?.ok_or_else(|| {
        let name = session.tenant();
        let advice = format!("make it with `polynym tenant set --tenant {name} --create`");
        Failure::Usage(format!("there is no tenant {name}: {advice}"))
    })?;
    given.options.types = table::types(&tenant);
    Ok(given)
}

/// The end of the exchange with the server.
enum End {
    Complete,
    Interrupted,
}

/// The thread that reads the file.
type ReaderThread = JoinHandle<Result<(i64, Tally), Failure>>;

fn spawn(reader: FileReader, command: Import, given: Given) -> Result<ReaderThread, Failure> {
    std::thread::Builder::new()
        .name("polynym-reader".to_owned())
        .spawn(move || {
            let outcome = reader.run(&command, given);
            if outcome.is_err() {
                reader.window.close();
            }
            outcome
        })
        .map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))
}

/// Fails if the file could not be read to its end, or the server ended early.
fn finish(
    reader_thread: ReaderThread,
    rejected_count: &AtomicI64,
    progress: &Progress,
) -> Result<Tally, Failure> {
    let (lines_read, tally) = reader_thread
        .join()
        .map_err(|_| Failure::Other("the reader of the file failed".to_owned()))??;
    if lines_read == 0 {
        return Err(Failure::Usage("the file is empty".to_owned()));
    }
    if progress.lines + rejected_count.load(Ordering::Relaxed) < lines_read {
        return Err(Failure::Other("the server ended the import early".to_owned()));
    }
    Ok(tally)
}

fn rejects_path(command: &Import) -> PathBuf {
    let file = if command.file.as_os_str() == "-" { "import".into() } else { command.file.clone() };
    let mut path = match (reader::is_table(command), file.extension()) {
        (true, Some(_)) => file.with_extension(""),
        _ => file,
    }
    .into_os_string();
    path.push(if reader::is_table(command) { ".rejects.csv" } else { ".rejects" });
    command.rejects.clone().unwrap_or_else(|| path.into())
}

fn options(session: &Session, command: &Import) -> Options {
    let on_conflict = match command.on_conflict {
        OnConflict::Reject => v1::OnConflict::Reject,
        OnConflict::SkipIdentity => v1::OnConflict::SkipIdentity,
    };
    let on_existing = match command.on_existing {
        OnExisting::Reject => v1::OnExisting::Reject,
        OnExisting::Skip => v1::OnExisting::Skip,
        OnExisting::Update => v1::OnExisting::Update,
        OnExisting::Replace => v1::OnExisting::Replace,
    };
    Options {
        tenant: if command.all_tenants { String::new() } else { session.tenant() },
        on_conflict: on_conflict.into(),
        validate_only: command.dry_run,
        on_existing: on_existing.into(),
        fields: Vec::new(),
        key: command.matches.clone().map_or_else(String::new, key),
        sequential_ids: command.ids == Ids::Sequential,
    }
}

/// The field of a key: another name is that of an attribute.
fn key(name: String) -> String {
    let is_field = ["email", "handle", "phone", "url"].contains(&&*name) || name.contains('.');
    if is_field { name } else { format!("attributes.{name}") }
}

/// An exchange with the server.
struct Exchange<'a> {
    window: &'a Arc<Window>,
    rejects: &'a Rejects,
    bar: &'a Bar,
    progress: Progress,
    changes: Changes,
}

impl Exchange<'_> {
    async fn run(
        &mut self,
        session: &Session,
        options: Options,
        receiver: Receiver<ImportUsersRequest>,
    ) -> Result<End, Failure> {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let requests = requests(options, receiver).take_until(stopped);
        let request = Request::new(requests);
        let mut answers = session.answer(session.admin().import_users(request).await)?;
        tokio::select! {
            outcome = self.receive(&mut answers) => {
                outcome?;
                return Ok(End::Complete);
            }
            _ = signal::ctrl_c() => {}
        }

        // Send no more lines, and wait for the answers to those sent.
        self.window.close();
        drop(stop);
        match timeout(SHUTDOWN_GRACE, self.receive(&mut answers)).await {
            Ok(Err(failure)) => Err(failure),
            Ok(Ok(())) | Err(_) => Ok(End::Interrupted),
        }
    }

    /// Receives the server's answers until the end of the stream.
    async fn receive(&mut self, answers: &mut Answers<ImportUsersResponse>) -> Result<(), Failure> {
        while let Some(answer) = answers.message().await.map_err(lost)? {
            self.apply(&answer)?;
        }
        Ok(())
    }

    fn apply(&mut self, answer: &ImportUsersResponse) -> Result<(), Failure> {
        for reject in &answer.rejects {
            self.rejects.add(Rejected {
                line: reject.line,
                reason: &reject.reason,
                message: &reject.message,
                identity_index: reject.identity_index,
                column: None,
                skipped: reject.skipped,
                owner: &reject.owner,
                original: self.window.get(reject.line),
            })?;
        }
        for change in &answer.changes {
            self.changes.add(change)?;
        }
        if let Some(progress) = answer.progress {
            self.progress = progress;
            let bytes = self.window.answer(progress.line);
            self.bar.set(&progress, bytes);
        }
        Ok(())
    }
}

/// The failure of an import in progress. Without a reason, the connection broke.
fn lost(error: Error) -> Failure {
    let status = error.status();
    if !error.reason().is_empty() {
        return status.clone().into();
    }
    let cause = root_cause(status).unwrap_or_else(|| status.message().to_owned());
    Failure::Other(format!(
        "the connection to the server was lost ({cause})\n  what to do: check that the server \
         runs, and run the same command again"
    ))
}

/// The messages of an import. The reader sends the options first; if it reads nothing, the import
/// is one without lines. Empty messages keep an idle stream open.
fn requests(
    options: Options,
    receiver: Receiver<ImportUsersRequest>,
) -> impl Stream<Item = ImportUsersRequest> + Send + 'static {
    let none = ImportUsersRequest { options: Some(options), ..Default::default() };
    stream::unfold((receiver, Some(none)), |(mut receiver, none)| async move {
        if none.is_some() {
            let first = receiver.recv().await.or(none)?;
            return Some((first, (receiver, None)));
        }
        match timeout(KEEPALIVE_INTERVAL, receiver.recv()).await {
            Ok(line) => line.map(|line| (line, (receiver, None))),
            Err(_) => Some((ImportUsersRequest::default(), (receiver, None))),
        }
    })
}
