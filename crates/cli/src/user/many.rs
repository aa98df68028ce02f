//! Changes of many users: those that a filter matches, or those of a file. Each change is an
//! ordinary call, so that the rights and limits of the caller apply. The history has one operation
//! id for all of them.

mod action;
mod apply;
mod left;
mod report;
mod targets;

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

use clap::Args;

use crate::client::Session;
use crate::client::user_ref::{self, UserRef};
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::confirm;
pub use action::Action;
use left::Left;
use report::Report;
use targets::{Source, Targets};

/// The users that a command changes: one, or many.
#[derive(Args)]
pub struct Subject {
    /// The user: an id, or an identifier of the user.
    #[arg(
        value_name = "USER",
        value_parser = user_ref::parse,
        required_unless_present_any = ["filter", "file"],
        conflicts_with_all = ["filter", "file"],
    )]
    user: Option<UserRef>,
    /// Change the users that a filter matches, as `user search` does. A user that changes after the
    /// search is not changed, and is listed in the file of `--left`.
    #[arg(long, value_name = "FILTER", help_heading = HEADING, conflicts_with = "file")]
    filter: Option<String>,
    /// Change the users of a file, one per line: an id, or an identifier. `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    file: Option<PathBuf>,
    /// Show how many users would change, and the first of them, without changing any.
    #[arg(long, help_heading = HEADING)]
    dry_run: bool,
    /// Do not ask for confirmation at a terminal.
    #[arg(long, help_heading = HEADING)]
    yes: bool,
    /// The file for the users that are left, after a failure or Ctrl-C, instead of
    /// polynym-OPERATION.left. `--file` reads it.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    left: Option<PathBuf>,
}

const HEADING: &str = "Many users";

impl Subject {
    /// The user, if the command changes one. Otherwise the other arguments choose many.
    pub fn one(&self) -> Option<&UserRef> {
        self.user.as_ref().filter(|_| !self.dry_run)
    }
}

/// Executes an action on the users of a subject.
pub async fn run(
    subject: Subject,
    settings: &Flags<ChangeClient>,
    action: Action,
) -> Result<(), Failure> {
    let session = Session::open_operation(settings, action.name()).await?;
    let source = match (subject.user, subject.filter, subject.file) {
        (Some(user), ..) => Source::One(user),
        (None, Some(filter), _) => Source::Filter(filter),
        (None, None, file) => Source::File(file.unwrap_or_else(|| "-".into())),
    };
    let is_stdin = matches!(&source, Source::File(path) if path.as_os_str() == "-");
    let targets = Targets::find(&session, source, &action).await?;
    let report = Report::new(&session, &action);
    if subject.dry_run {
        return report.dry_run(&targets);
    }

    let count = targets.eligible.len();
    if !subject.yes && !is_stdin && stdin().is_terminal() && count > 0 {
        let question = format!("{} {count} users? Type yes: ", action.title());
        confirm::require_answer(&question, "yes", "nothing was changed")?;
    }
    eprintln!("operation {}: {count} users to {}", session.operation_id(), action.name());
    let path = subject.left.unwrap_or_else(|| Left::default_path(session.operation_id()));
    let outcome = apply::apply(&session, &action, targets, Left::new(path)).await?;
    report.finish(outcome)
}
