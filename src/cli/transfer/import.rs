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
use tonic::{Request, Streaming};

use super::arguments::{Ids, Import, OnConflict};
use super::reader::FileReader;
use super::rejects::{Rejected, Rejects};
use super::report::{Bar, Summary};
use super::window::Window;
use crate::cli::client::Session;
use crate::cli::failure::Failure;
use crate::proto::v1;
use v1::import_users_request::Options;
use v1::import_users_response::Progress;
use v1::{ImportUsersRequest, ImportUsersResponse};

/// Requests between the reader and the connection.
const QUEUE: usize = 256;
/// The pause after which a message without a line keeps the stream open.
const KEEP_OPEN: Duration = Duration::from_secs(3);
/// The time that what is under way has to finish after Ctrl-C.
const STOPPING: Duration = Duration::from_secs(15);
const GO_ON: &str = "run the same command again to go on: what is there already is not imported \
    twice";

pub async fn run(command: Import) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let (window, rejected) = (Arc::new(Window::default()), Arc::new(AtomicI64::new(0)));
    let rejects = Arc::new(Rejects::new(rejects_path(&command), &command.file)?);
    let bar = Bar::new(&command.file);
    let (sender, receiver) = mpsc::channel(QUEUE);
    let options = options(&session, &command);
    let (dry_run, is_named) = (command.dry_run, command.rejects.is_some());
    let reader = FileReader {
        window: window.clone(),
        rejects: rejects.clone(),
        requests: sender,
        rejected: rejected.clone(),
    };
    let reader = spawn(reader, command)?;

    let mut running =
        Running { window: &window, rejects: &rejects, bar: &bar, progress: Progress::default() };
    let ended = running.run(&session, options, receiver).await;
    let progress = running.progress;
    window.close();
    bar.clear();
    let ended = match ended {
        // Nobody waits for a reader that waits for its input.
        Ok(End::Interrupted) => Err(Failure::Interrupted),
        Ok(End::Complete) => finished(reader, &rejected, &progress),
        Err(failure) => Err(failure),
    };
    rejects.finish()?;
    // A file that --rejects names may be something else than rejects: it stays.
    if ended.is_ok() && !is_named {
        rejects.remove_older()?;
    }

    let rejected_here = rejected.load(Ordering::Relaxed);
    let json = session.json();
    let summary = Summary { progress, rejected_here, rejects: &rejects, dry_run, json };
    match ended {
        Ok(()) => summary.print(),
        Err(failure @ (Failure::Usage(_) | Failure::Config(_))) => Err(failure),
        Err(failure) => {
            let done = progress.lines;
            eprintln!("broken off after {done} lines: {GO_ON}");
            Err(failure)
        }
    }
}

/// How the exchange with the server ended.
enum End {
    Complete,
    Interrupted,
}

fn spawn(reader: FileReader, command: Import) -> Result<JoinHandle<Result<i64, Failure>>, Failure> {
    let thread = std::thread::Builder::new().name("polynym-reader".to_owned());
    let thread = thread.spawn(move || {
        let read = reader.run(&command);
        if read.is_err() {
            reader.window.close();
        }
        read
    });
    thread.map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))
}

/// Fails where the file could not be read to its end, or the server ended before it.
fn finished(
    reader: JoinHandle<Result<i64, Failure>>,
    rejected: &AtomicI64,
    progress: &Progress,
) -> Result<(), Failure> {
    let panicked = || Failure::Other("the reader of the file failed".to_owned());
    let read = reader.join().map_err(|_| panicked())??;
    if read == 0 {
        return Err(Failure::Usage("the file is empty: there is nothing to import".to_owned()));
    }
    if progress.lines + rejected.load(Ordering::Relaxed) < read {
        return Err(Failure::Other("the server ended the import before its end".to_owned()));
    }
    Ok(())
}

fn rejects_path(command: &Import) -> PathBuf {
    let stem = if command.file.as_os_str() == "-" { "import".into() } else { command.file.clone() };
    let mut path = stem.into_os_string();
    path.push(".rejects");
    command.rejects.clone().unwrap_or_else(|| path.into())
}

fn options(session: &Session, command: &Import) -> Options {
    let on_conflict = match command.on_conflict {
        OnConflict::Reject => v1::OnConflict::Reject,
        OnConflict::SkipIdentity => v1::OnConflict::SkipIdentity,
    };
    Options {
        tenant: if command.all_tenants { String::new() } else { session.tenant() },
        on_conflict: on_conflict.into(),
        validate_only: command.dry_run,
        sequential_ids: command.ids == Ids::Sequential,
    }
}

/// An exchange with the server.
struct Running<'a> {
    window: &'a Arc<Window>,
    rejects: &'a Rejects,
    bar: &'a Bar,
    progress: Progress,
}

impl Running<'_> {
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
            outcome = self.take(&mut answers) => {
                outcome?;
                return Ok(End::Complete);
            }
            _ = signal::ctrl_c() => {}
        }

        // Lines that were sent are finished. No further lines are sent.
        self.window.close();
        drop(stop);
        match timeout(STOPPING, self.take(&mut answers)).await {
            Ok(Err(failure)) => Err(failure),
            Ok(Ok(())) | Err(_) => Ok(End::Interrupted),
        }
    }

    /// Takes the server's answers until it has no more.
    async fn take(&mut self, answers: &mut Streaming<ImportUsersResponse>) -> Result<(), Failure> {
        while let Some(answer) = answers.message().await? {
            self.answer(&answer)?;
        }
        Ok(())
    }

    fn answer(&mut self, answer: &ImportUsersResponse) -> Result<(), Failure> {
        for reject in &answer.rejects {
            self.rejects.add(Rejected {
                line: reject.line,
                reason: &reject.reason,
                message: &reject.message,
                identity_index: reject.identity_index,
                skipped: reject.skipped,
                original: self.window.get(reject.line),
            })?;
        }
        if let Some(progress) = answer.progress {
            self.progress = progress;
            let bytes = self.window.answer(progress.line);
            self.bar.set(&progress, bytes);
        }
        Ok(())
    }
}

/// The messages of an import. While there is no line, one without keeps the stream open.
fn requests(
    options: Options,
    receiver: Receiver<ImportUsersRequest>,
) -> impl Stream<Item = ImportUsersRequest> + Send + 'static {
    let first = ImportUsersRequest { options: Some(options), ..Default::default() };
    let lines = stream::unfold(receiver, |mut receiver| async move {
        match timeout(KEEP_OPEN, receiver.recv()).await {
            Ok(line) => line.map(|line| (line, receiver)),
            Err(_) => Some((ImportUsersRequest::default(), receiver)),
        }
    });
    stream::iter([first]).chain(lines)
}
