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
use crate::proto::v1::watch_response::Kind;
use crate::proto::v1::{EventType, WatchRequest};

pub const EXAMPLES: &str = "\
Examples:
  polynym watch
  polynym watch --type identity_linked --type identity_unlinked --json
  polynym watch --resume-file /var/lib/sync/polynym.token --json";

/// The pause before a server that is away is asked again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub struct Watch {
    /// Watch this user; may be given again. Without it: all of them.
    #[arg(long = "user", value_name = "USER_ID")]
    users: Vec<String>,
    /// Show events of this type, such as user_updated or identity_linked; may be given again.
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    types: Vec<EventType>,
    /// Go on after this token. Without it: begin now.
    #[arg(long, value_name = "TOKEN", conflicts_with = "resume_file")]
    resume_token: Option<String>,
    /// Keep the token of the last event that was shown in this file, and go on from there.
    #[arg(long, value_name = "FILE")]
    resume_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Flags<Client>,
}

/// Shows events until Ctrl-C. While the server is away, it is asked again and again.
pub async fn run(command: Watch) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let file = command.resume_file.as_deref();
    let token = command.resume_token.map_or_else(|| kept(file), Ok)?;
    let request = WatchRequest {
        tenant: session.tenant(),
        user_ids: command.users,
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        resume_token: token,
    };
    tokio::select! {
        outcome = watch_on(&session, request, file) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}

/// Watches again and again, each time from where the last watch has ended.
async fn watch_on(
    session: &Session,
    mut request: WatchRequest,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let mut is_away = false;
    loop {
        let status = match watch(session, &mut request, file, &mut is_away).await {
            Ok(()) => continue,
            Err(Broken::Call(status)) if is_passing(&status) => status,
            Err(Broken::Call(status)) => return Err(session.failed(status, None)),
            Err(Broken::Here(failure)) => return Err(failure),
        };
        if !is_away {
            eprintln!("the watch goes on once the server answers: {}", printable(status.message()));
        }
        is_away = true;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Why a watch has ended.
enum Broken {
    Call(Status),
    Here(Failure),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}

/// Watches until the server ends it.
async fn watch(
    session: &Session,
    request: &mut WatchRequest,
    file: Option<&Path>,
    is_away: &mut bool,
) -> Result<(), Broken> {
    let answers = session.directory().watch(request.clone()).await.map_err(Broken::Call)?;
    let mut answers = answers.into_inner();
    while let Some(answer) = answers.message().await.map_err(Broken::Call)? {
        *is_away = false;
        if let Some(Kind::Event(event)) = &answer.kind {
            show(session, event)?;
        }
        if let Some(file) = file {
            keep(file, &answer.resume_token)?;
        }
        request.resume_token = answer.resume_token;
    }
    Ok(())
}

/// Whether the watch can go on later.
fn is_passing(status: &Status) -> bool {
    let code = status.code();
    matches!(code, Code::Unavailable | Code::Unknown | Code::Cancelled | Code::ResourceExhausted)
}

/// The token in a file; nothing where the file is not there yet.
fn kept(file: Option<&Path>) -> Result<String, Failure> {
    let Some(file) = file else { return Ok(String::new()) };
    match std::fs::read_to_string(file) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::Other(format!("--resume-file {}: {error}", file.display()))),
    }
}

/// Replaces the token in a file as a whole.
fn keep(file: &Path, token: &str) -> Result<(), Failure> {
    let new = file.with_extension("new");
    let written = std::fs::write(&new, token).and_then(|()| std::fs::rename(&new, file));
    written.map_err(|error| Failure::Other(format!("--resume-file {}: {error}", file.display())))
}
