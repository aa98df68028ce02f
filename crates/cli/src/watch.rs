//! `polynym watch`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tonic::{Code, Status};

use super::client::Session;
use super::failure::Failure;
use super::output::printable;
use super::user::history::{event_type, show};
use crate::config::{Client, Flags};
use polynym_proto::v1::watch_response::Kind;
use polynym_proto::v1::{EventType, WatchRequest};

pub const EXAMPLES: &str = "\
Examples:
  polynym watch
  polynym watch --type identity_linked --type identity_unlinked --json
  polynym watch --resume-file /var/lib/sync/polynym.token --json";

/// The delay before a lost connection is retried.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

#[derive(Args)]
pub struct Watch {
    /// Watch this user; can be repeated. By default, watch all users.
    #[arg(long = "user", value_name = "USER_ID")]
    users: Vec<String>,
    /// Show events of this type, such as user_updated or identity_linked; can be repeated.
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    types: Vec<EventType>,
    /// Resume after this token. By default, begin now.
    #[arg(long, value_name = "TOKEN", conflicts_with = "resume_file")]
    resume_token: Option<String>,
    /// Store the token of the last shown event in this file, and resume after it.
    #[arg(long, value_name = "FILE")]
    resume_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Flags<Client>,
}

/// Shows events until Ctrl-C. Reconnects while the server is unavailable.
pub async fn run(command: Watch) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let file = command.resume_file.as_deref();
    let token = command.resume_token.map_or_else(|| read_token(file), Ok)?;
    let request = WatchRequest {
        tenant: session.tenant(),
        user_ids: command.users,
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        resume_token: token,
    };
    tokio::select! {
        outcome = watch_with_retries(&session, request, file) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}

/// Watches in a loop, resuming after the last event.
async fn watch_with_retries(
    session: &Session,
    mut request: WatchRequest,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let mut is_disconnected = false;
    loop {
        let status = match watch(session, &mut request, file, &mut is_disconnected).await {
            Ok(()) => continue,
            Err(WatchError::Call(status)) if is_retryable(&status) => status,
            Err(WatchError::Call(status)) => return Err(session.failure(status, None)),
            Err(WatchError::Local(failure)) => return Err(failure),
        };
        if !is_disconnected {
            eprintln!("reconnecting: {}", printable(status.message()));
        }
        is_disconnected = true;
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

/// The error that ended a watch.
enum WatchError {
    Call(Status),
    Local(Failure),
}

impl From<Failure> for WatchError {
    fn from(failure: Failure) -> Self {
        Self::Local(failure)
    }
}

/// Watches until the server ends the stream.
async fn watch(
    session: &Session,
    request: &mut WatchRequest,
    file: Option<&Path>,
    is_disconnected: &mut bool,
) -> Result<(), WatchError> {
    let outcome = session.directory().watch(request.clone()).await;
    let mut answers = outcome.map_err(WatchError::Call)?.into_inner();
    while let Some(answer) = answers.message().await.map_err(WatchError::Call)? {
        *is_disconnected = false;
        if let Some(Kind::Event(event)) = &answer.kind {
            show(session, event)?;
        }
        if let Some(file) = file {
            write_token(file, &answer.resume_token)?;
        }
        request.resume_token = answer.resume_token;
    }
    Ok(())
}

/// Whether the watch can resume later.
fn is_retryable(status: &Status) -> bool {
    let code = status.code();
    matches!(code, Code::Unavailable | Code::Unknown | Code::Cancelled | Code::ResourceExhausted)
}

/// The token in a file; empty if the file does not exist.
fn read_token(file: Option<&Path>) -> Result<String, Failure> {
    let Some(file) = file else { return Ok(String::new()) };
    match std::fs::read_to_string(file) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::Other(format!("--resume-file {}: {error}", file.display()))),
    }
}

/// Replaces the token in a file atomically.
fn write_token(file: &Path, token: &str) -> Result<(), Failure> {
    let new = file.with_extension("new");
    std::fs::write(&new, token)
        .and_then(|()| std::fs::rename(&new, file))
        .map_err(|error| Failure::Other(format!("--resume-file {}: {error}", file.display())))
}
