//! `polynym import`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal;
use tonic::metadata::MetadataMap;

use super::arguments::{Ids, Import, OnConflict, OnExisting};
use super::changes::Changes;
use super::report::{Bar, Summary};
use super::{format, inspect, table};
use crate::client::Session;
use crate::client::connection::root_cause;
use crate::failure::Failure;
use crate::files;
use polynym_client::Error;
use polynym_import::{
    Findings, Format, Observer, ReadError, ReadOptions, Rejects, SendError, Sent, Target,
};
use polynym_proto::v1;
use polynym_table::Given;
use v1::import_users_request::Options;
use v1::import_users_response::{Change, Progress};

/// The time to wait after Ctrl-C for the answers to sent lines.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(15);
const RESUME_ADVICE: &str = "run the same command again to continue; it imports no user twice";

pub async fn run(mut command: Import) -> Result<(), Failure> {
    format::resolve(&mut command)?;
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
    let given = with_definitions(given, &command, &session).await?;
    let path = rejects_path(&command);
    let rejects = Arc::new(rejects(&path, &command.file)?);
    let (dry_run, names_rejects_file) = (command.dry_run, command.rejects.is_some());
    let file = command.file.clone();
    let Transferred { sent, changes } = transfer(command, given, &session, &rejects).await?;
    let Sent { outcome, progress, rejected_here } = sent;
    let outcome = outcome.map_err(|error| failure(error, &session, (&file, &path)));
    let has_rejects = rejects.finish().map_err(|error| files::failure(&path, error))?;
    // Keeps a file that --rejects names: it may be something else.
    if outcome.is_ok() && !names_rejects_file && !has_rejects {
        remove(&path).map_err(|error| files::failure(&path, error))?;
    }

    match outcome {
        Ok(Findings { tally, notes }) => {
            let (changes, json) = (changes.finish()?, session.json());
            let reasons = rejects.reasons().into_iter().map(|(name, reason)| (name, reason.count));
            let (reasons, operation_id) = (reasons.collect(), session.operation_id());
            let summary = Summary {
                progress,
                rejected_here,
                reasons,
                rejects: &path,
                tally,
                notes,
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
            if progress.created + progress.restored + progress.changed > 0 {
                eprintln!("--operation-id {} makes both one operation", session.operation_id());
            }
            Err(failure)
        }
    }
}

/// The result of sending a file.
struct Transferred {
    sent: Sent<Failure>,
    changes: Changes,
}

/// Sends the lines of the file, and receives the answers.
async fn transfer(
    command: Import,
    given: Given,
    session: &Session,
    rejects: &Arc<Rejects>,
) -> Result<Transferred, Failure> {
    let bar = Bar::new(&command.file);
    let changes = Changes::new(command.changes.as_deref())?;
    let import = polynym_import::Import {
        options: options(session, &command),
        headers: MetadataMap::new(),
        format: source(&command, session.tenant(), given),
        rejects: rejects.clone(),
        grace: SHUTDOWN_GRACE,
    };
    let mut progress = Shown { bar: &bar, changes };
    let open =
        move || files::open(&command.file).map_err(|error| ReadError::File(error.to_string()));
    let stop = async { drop(signal::ctrl_c().await) };
    let sent = import.send(session.client(), open, stop, &mut progress).await;
    let changes = progress.changes;
    bar.clear();
    Ok(Transferred { sent, changes })
}

/// Shows an import while it runs.
struct Shown<'b> {
    bar: &'b Bar,
    changes: Changes,
}

impl Observer for Shown<'_> {
    type Error = Failure;

    fn changed(&mut self, change: &Change) -> Result<(), Failure> {
        self.changes.add(change)
    }

    fn progressed(&mut self, progress: &Progress, bytes: u64) {
        self.bar.set(progress, bytes);
    }
}

/// Adds the types of the tenant's attributes for a table. Fails before the first row if there is no
/// tenant.
async fn with_definitions(
    mut given: Given,
    command: &Import,
    session: &Session,
) -> Result<Given, Failure> {
    if !format::is_table(command) {
        return Ok(given);
    }
    let tenant = session.find_tenant().await?.ok_or_else(|| {
        let name = session.tenant();
        let advice = format!("make it with `polynym tenant set --tenant {name} --create`");
        Failure::Usage(format!("there is no tenant {name}: {advice}"))
    })?;
    given.options.definitions = polynym_import::definitions(&tenant);
    Ok(given)
}

/// The format of the file, with its options.
fn source(command: &Import, tenant: String, given: Given) -> Format {
    if format::is_table(command) {
        return Format::Table { given: Box::new(given), key: command.matches.clone() };
    }
    let tenant = command.any_tenant.then_some(tenant);
    let target = Target { tenant, has_new_ids: command.new_ids };
    match format::export(command) {
        Some(format) => {
            let (region, encoding) = (given.options.region, given.encoding);
            Format::Export { format, options: ReadOptions { region, encoding }, target }
        }
        None => Format::Lines(target),
    }
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
    let mut path = match (format::is_table(command), file.extension()) {
        (true, Some(_)) => file.with_extension(""),
        _ => file,
    }
    .into_os_string();
    path.push(if format::is_table(command) { ".rejects.csv" } else { ".rejects" });
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

/// The failure of an import of `file`, whose rejects go to `rejects`.
fn failure(
    error: SendError<Failure>,
    session: &Session,
    (file, rejects): (&Path, &Path),
) -> Failure {
    match error {
        SendError::Stopped => Failure::Interrupted,
        SendError::Refused(error) => session.failure(error),
        SendError::Lost(error) => lost(&error),
        SendError::Observer(failure) => failure,
        SendError::Read(ReadError::File(error)) => files::failure(file, error),
        SendError::Rejects(error) => files::failure(rejects, error),
        SendError::Empty | SendError::Read(ReadError::Mapping(_)) => {
            Failure::Usage(error.to_string())
        }
        SendError::EndedEarly | SendError::Thread(_) | SendError::Read(ReadError::Rejects(_)) => {
            Failure::Other(error.to_string())
        }
    }
}

/// The failure of an import in progress. Without a reason, the connection broke.
fn lost(error: &Error) -> Failure {
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
