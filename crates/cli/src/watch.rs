//! `polynym watch`.

mod resume_file;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::time::timeout_at;
use tonic::{Code, Status};

use resume_file::ResumeFile;

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
    let mut file = command.resume_file.map(ResumeFile::new);
    let token = match (command.resume_token, &file) {
        (Some(token), _) => token,
        (None, Some(file)) => file.read()?,
        (None, None) => String::new(),
    };
    let request = WatchRequest {
        tenant: session.tenant(),
        user_ids: command.users,
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        resume_token: token,
    };
    let outcome = tokio::select! {
        outcome = watch_with_retries(&session, request, file.as_mut()) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    file.map_or(Ok(()), |mut file| file.save())?;
    outcome
}

/// Watches in a loop, resuming after the last event.
async fn watch_with_retries(
    session: &Session,
    mut request: WatchRequest,
    mut file: Option<&mut ResumeFile>,
) -> Result<(), Failure> {
    let mut is_disconnected = false;
    loop {
        let status =
            match watch(session, &mut request, file.as_deref_mut(), &mut is_disconnected).await {
                Ok(()) => continue,
                Err(WatchError::Call(status)) if is_retryable(&status) => status,
                Err(WatchError::Call(status)) => return Err(session.failure(status, None)),
                Err(WatchError::Local(failure)) => return Err(failure),
            };
        if !is_disconnected {
            eprintln!("reconnecting: {}", printable(status.message()));
        }
        is_disconnected = true;
        file.as_deref_mut().map_or(Ok(()), ResumeFile::save)?;
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
    mut file: Option<&mut ResumeFile>,
    is_disconnected: &mut bool,
) -> Result<(), WatchError> {
    let outcome = session.directory().watch(request.clone()).await;
    let mut answers = outcome.map_err(WatchError::Call)?.into_inner();
    loop {
        let answer = match file.as_deref_mut().and_then(|file| file.save_at()) {
            None => answers.message().await,
            Some(time) => match timeout_at(time, answers.message()).await {
                Ok(answer) => answer,
                Err(_) => {
                    file.as_deref_mut().map_or(Ok(()), ResumeFile::save)?;
                    continue;
                }
            },
        };
        let Some(answer) = answer.map_err(WatchError::Call)? else { return Ok(()) };
        *is_disconnected = false;
        if let Some(Kind::Event(event)) = &answer.kind {
            show(session, event)?;
        }
        if let Some(file) = file.as_deref_mut() {
            file.keep(&answer.resume_token)?;
        }
        request.resume_token = answer.resume_token;
    }
}

/// Whether the watch can resume later.
fn is_retryable(status: &Status) -> bool {
    let code = status.code();
    matches!(code, Code::Unavailable | Code::Unknown | Code::Cancelled | Code::ResourceExhausted)
}
