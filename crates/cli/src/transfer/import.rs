//! `polynym import`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::signal;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tonic::Request;

use super::arguments::{Format, Ids, Import, OnConflict, OnExisting};
use super::changes::Changes;
use super::inspect;
use super::report::{Bar, Summary};
use super::table;
use crate::client::Session;
use crate::client::connection::root_cause;
use crate::failure::Failure;
use crate::files;
use polynym_client::{Answers, Error};
use polynym_import::{Exchange, FileReader, ReadError, Rejects, Target};
use polynym_proto::v1;
use polynym_table::{Given, Tally};
use v1::import_users_request::Options;
use v1::import_users_response::Progress;
use v1::{ImportUsersRequest, ImportUsersResponse};

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
        let advice = "it finds users who exist: add --on-existing update, fill, replace or skip";
        return Err(Failure::Usage(format!("--match: {advice}")));
    }
    let given = table::given(&command.table)?;
    let session = Session::open_operation(&command.settings, "import").await?;
    let given = with_types(given, &command, &session).await?;
    let path = rejects_path(&command);
    let rejects = Arc::new(rejects(&path, &command.file)?);
    let (dry_run, names_rejects_file) = (command.dry_run, command.rejects.is_some());
    let Transferred { outcome, progress, rejected_here, changes } =
        transfer(command, given, &session, &rejects, &path).await?;
    let has_rejects = rejects.finish().map_err(|error| files::failure(&path, error))?;
    // Keeps a file that --rejects names: it may be something else.
    if outcome.is_ok() && !names_rejects_file && !has_rejects {
        remove(&path).map_err(|error| files::failure(&path, error))?;
    }

    match outcome {
        Ok(tally) => {
            let (changes, json) = (changes.finish()?, session.json());
            let reasons = rejects.reasons().into_iter().map(|(name, own)| (name, own.count));
            let (reasons, operation_id) = (reasons.collect(), session.operation_id());
            let summary = Summary {
                progress,
                rejected_here,
                reasons,
                rejects: &path,
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
    path: &Path,
) -> Result<Transferred, Failure> {
    let bar = Bar::new(&command.file);
    let (sender, receiver) = polynym_import::channel();
    let options = options(session, &command);
    let changes = Changes::new(command.changes.as_deref())?;
    let exchange = Exchange::new(rejects.clone());
    let reader = exchange.reader(sender, options.clone());
    let reader_thread = spawn(reader, command, session.tenant(), given)?;

    let mut transfer = Transfer { exchange, path, bar: &bar, changes };
    let end = transfer.run(session, options, receiver).await;
    let Transfer { exchange, changes, .. } = transfer;
    exchange.window.close();
    bar.clear();
    let outcome = match end {
        // The reader may block on its input: do not wait for it.
        Ok(End::Interrupted) => Err(Failure::Interrupted),
        Ok(End::Complete) => finish(reader_thread, &exchange),
        Err(failure) => Err(failure),
    };
    let (progress, rejected_here) = (exchange.progress, exchange.rejected_here());
    Ok(Transferred { outcome, progress, rejected_here, changes })
}

/// Adds the types of the tenant's attributes for a table. Fails before the first row if there is no
/// tenant.
async fn with_types(
    mut given: Given,
    command: &Import,
    session: &Session,
) -> Result<Given, Failure> {
    if !is_table(command) {
        return Ok(given);
    }
    let tenant = session.find_tenant().await?.ok_or_else(|| {
        let name = session.tenant();
        let advice = format!("make it with `polynym tenant set --tenant {name} --create`");
        Failure::Usage(format!("there is no tenant {name}: {advice}"))
    })?;
    given.options.types = polynym_import::types(&tenant);
    Ok(given)
}

/// The end of the exchange with the server.
enum End {
    Complete,
    Interrupted,
}

/// The thread that reads the file.
type ReaderThread = JoinHandle<Result<(i64, Tally), Failure>>;

fn spawn(
    reader: FileReader,
    command: Import,
    tenant: String,
    given: Given,
) -> Result<ReaderThread, Failure> {
    std::thread::Builder::new()
        .name("polynym-reader".to_owned())
        .spawn(move || {
            let path = &command.file;
            let format = if is_table(&command) {
                polynym_import::Format::Table {
                    given: Box::new(given),
                    key: command.matches.clone(),
                }
            } else {
                let tenant = command.any_tenant.then_some(tenant);
                let has_new_ids = command.new_ids;
                polynym_import::Format::Lines(Target { tenant, has_new_ids })
            };
            let outcome = files::open(path).and_then(|file| {
                reader.run(file, format).map_err(|error| match error {
                    ReadError::File(error) => files::failure(path, error),
                    ReadError::Mapping(error) => Failure::Usage(error),
                    ReadError::Rejects(error) => {
                        Failure::Other(format!("cannot write the rejects: {error}"))
                    }
                })
            });
            if outcome.is_err() {
                reader.close();
            }
            outcome
        })
        .map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))
}

/// Fails if the file could not be read to its end, or the server ended early.
fn finish(reader_thread: ReaderThread, exchange: &Exchange) -> Result<Tally, Failure> {
    let (lines_read, tally) = reader_thread
        .join()
        .map_err(|_| Failure::Other("the reader of the file failed".to_owned()))??;
    if lines_read == 0 {
        return Err(Failure::Usage("the file is empty".to_owned()));
    }
    if !exchange.is_complete(lines_read) {
        return Err(Failure::Other("the server ended the import early".to_owned()));
    }
    Ok(tally)
}

/// Whether the file is a table.
pub fn is_table(command: &Import) -> bool {
    let is_named = || polynym_import::is_table_name(&command.file);
    command.format.map_or_else(is_named, |format| format == Format::Csv)
}

/// The rejects of `input`, in the file at `path`. The first one replaces an earlier file.
fn rejects(path: &Path, input: &Path) -> Result<Rejects, Failure> {
    let is_input = match (path.canonicalize(), input.canonicalize()) {
        (Ok(path), Ok(input)) => path == input && input.is_file(),
        _ => false,
    };
    if is_input {
        let message = "--rejects: the file to import: name another one";
        return Err(Failure::Usage(message.to_owned()));
    }
    let path = path.to_owned();
    Ok(Rejects::new(move || {
        remove(&path)?;
        Ok(Box::new(BufWriter::new(File::create(&path)?)) as Box<dyn Write + Send>)
    }))
}

/// Removes a regular file, but no device or link.
fn remove(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

fn rejects_path(command: &Import) -> PathBuf {
    let file = if command.file.as_os_str() == "-" { "import".into() } else { command.file.clone() };
    let mut path = match (is_table(command), file.extension()) {
        (true, Some(_)) => file.with_extension(""),
        _ => file,
    }
    .into_os_string();
    path.push(if is_table(command) { ".rejects.csv" } else { ".rejects" });
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
        OnExisting::Fill => v1::OnExisting::Fill,
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

/// An import while it runs.
struct Transfer<'a> {
    exchange: Exchange,
    /// The file of rejects.
    path: &'a Path,
    bar: &'a Bar,
    changes: Changes,
}

impl Transfer<'_> {
    async fn run(
        &mut self,
        session: &Session,
        options: Options,
        receiver: Receiver<ImportUsersRequest>,
    ) -> Result<End, Failure> {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let requests = polynym_import::requests(options, receiver).take_until(stopped);
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
        self.exchange.window.close();
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
        let bytes = self.exchange.apply(answer);
        let bytes = bytes.map_err(|error| files::failure(self.path, error))?;
        for change in &answer.changes {
            self.changes.add(change)?;
        }
        self.bar.set(&self.exchange.progress, bytes);
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
