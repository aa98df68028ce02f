//! `polynym watch`.

mod resume_file;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use tokio::time::timeout_at;

use resume_file::ResumeFile;

use super::client::Session;
use super::failure::Failure;
use super::output::printable;
use super::user::history::show;
use crate::config::{Client, Flags};
use polynym_presentation::event::parse;
use polynym_proto::v1::watch_response::Kind;
use polynym_proto::v1::{EventType, WatchRequest};

pub const EXAMPLES: &str = "\
Examples:
  polynym watch
  polynym watch --type identity_linked --type identity_unlinked --json
  polynym watch --resume-file /var/lib/sync/polynym.token --json";

#[derive(Args)]
pub struct Watch {
    /// Watch this user; can be repeated. By default, watch all users.
    #[arg(long = "user", value_name = "USER_ID")]
    users: Vec<String>,
    /// Show events of this type, such as user_updated or identity_linked; can be repeated.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse)]
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
        outcome = watch(&session, request, file.as_mut()) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    file.map_or(Ok(()), |mut file| file.save())?;
    outcome
}

/// Shows events, and keeps their tokens.
async fn watch(
    session: &Session,
    request: WatchRequest,
    mut file: Option<&mut ResumeFile>,
) -> Result<(), Failure> {
    let is_lost = Arc::new(AtomicBool::new(false));
    let is_reported = Arc::clone(&is_lost);
    let mut watch = session.client().watch(request).on_lost(move |error| {
        if !is_reported.swap(true, Ordering::Relaxed) {
            eprintln!("reconnecting: {}", printable(error.message()));
        }
    });
    loop {
        let answer = match file.as_deref_mut().and_then(|file| file.save_at()) {
            None => watch.message().await,
            Some(time) => match timeout_at(time, watch.message()).await {
                Ok(answer) => answer,
                Err(_) => {
                    file.as_deref_mut().map_or(Ok(()), ResumeFile::save)?;
                    continue;
                }
            },
        };
        let answer = session.answer(answer)?;
        is_lost.store(false, Ordering::Relaxed);
        if let Some(Kind::Event(event)) = &answer.kind {
            show(session, event)?;
        }
        if let Some(file) = file.as_deref_mut() {
            file.keep(&answer.resume_token)?;
        }
    }
}
