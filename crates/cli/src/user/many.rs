//! Changes of many users: those that a filter matches, or those of a file, by bulk changes of the
//! server.

mod action;
mod names;

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::Signal;
use tonic::Code;

use crate::bulk::show::{interrupts, wait};
use crate::client::user_ref::{self, UserRef};
use crate::client::{Session, request_id};
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::{self, confirm, printable};
use crate::text::filter_error::with_excerpt;
pub use action::Action;
use names::{Users, find, read_file};
use polynym_presentation::action::bulk_words;
use polynym_presentation::state;
use polynym_proto::v1;
use v1::{BulkAction, BulkChange, BulkChangeState, StartBulkChangeRequest};

/// The users of one bulk change.
const MAX_LISTED: usize = 50_000;
/// The maximum bytes of the id of a bulk change.
const MAX_ID_BYTES: usize = 64;
/// The number of users that a dry run shows.
const SHOWN: usize = 10;

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
    /// Change the users that a filter matches, as `user search` does.
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
    let session = Session::open_operation(settings, bulk_words(&action).0).await?;
    let is_stdin = subject.file.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let users = match (subject.user, subject.filter, subject.file) {
        (_, Some(filter), _) => Users::matching(filter)?,
        (_, _, Some(path)) => Users::Named(read_file(&path)?),
        // Only this finds a deleted user by an identifier.
        (Some(user), ..) if matches!(action, Action::Undelete(_)) => {
            Users::Named(vec![UserRef::Id(user.id_of_any(&session).await?)])
        }
        (user, ..) => Users::Named(user.into_iter().collect()),
    };
    let operation = Operation { session, action, dry_run: subject.dry_run };
    if !subject.dry_run {
        let verb = bulk_words(&operation.action).0;
        let count = match &users {
            Users::Matching(_) => "the users that the filter matches".to_owned(),
            Users::Named(names) => format!("{} users", names.len()),
        };
        if !subject.yes && !is_stdin && stdin().is_terminal() {
            let question = format!("Do you want to {verb} {count}? Type yes: ");
            confirm::require_answer(&question, "yes", "nothing was changed")?;
        }
        eprintln!("operation {}: {count} to {verb}", operation.session.operation_id());
    }
    operation.run(&users).await
}

/// The users of one bulk change.
enum Part<'u> {
    Filter(&'u str),
    Names(&'u [UserRef]),
}

/// A change of many users.
struct Operation {
    session: Session,
    action: Action,
    dry_run: bool,
}

/// The numbers of users by result.
#[derive(Default)]
struct Totals {
    changed: i64,
    unchanged: i64,
    skipped: i64,
    /// The failures by reason.
    failed: BTreeMap<String, i64>,
}

impl Operation {
    /// Changes the users, by one bulk change after the other if they are very many.
    async fn run(&self, users: &Users) -> Result<(), Failure> {
        let parts = match users {
            Users::Matching(filter) => vec![Part::Filter(filter)],
            Users::Named(names) => names.chunks(MAX_LISTED).map(Part::Names).collect(),
        };
        if self.bulk_id(parts.len() - 1).len() > MAX_ID_BYTES {
            return Err(Failure::Usage("--operation-id is too long for so many users".to_owned()));
        }
        let (mut totals, mut end) = (Totals::default(), Ok(()));
        let mut interrupt = interrupts()?;
        for (n, part) in parts.into_iter().enumerate() {
            let id = self.bulk_id(n);
            let begun = match self.begun(&id, &part).await? {
                Some(begun) => Some(begun),
                None => tokio::select! {
                    started = self.start(&id, &part, &mut totals) => started?,
                    _ = interrupt.recv() => {
                        self.say_how_to_go_on("interrupted");
                        return Err(Failure::Interrupted);
                    }
                },
            };
            let Some(begun) = begun else { continue };
            let (change, is_interrupted) = self.finish(begun, &mut interrupt).await?;
            totals.add(&change);
            end = self.end(&change, is_interrupted);
            if end.is_err() {
                break;
            }
        }
        self.report(&totals, users).await?;
        match totals.failed.is_empty() || self.dry_run {
            true => end,
            false => end.and(Err(Failure::AlreadyReported)),
        }
    }

    /// The id of the bulk change of a part.
    fn bulk_id(&self, n: usize) -> String {
        match (self.dry_run, n) {
            (true, _) => format!("dry-run-{}", uuid::Uuid::now_v7()),
            (false, 0) => self.session.operation_id().to_owned(),
            (false, n) => format!("{}.{}", self.session.operation_id(), n + 1),
        }
    }

    /// The bulk change that an earlier run of the command began, if it deletes named users: their
    /// names do not find them any more. Others are found by starting them again.
    async fn begun(&self, id: &str, part: &Part<'_>) -> Result<Option<BulkChange>, Failure> {
        let session = &self.session;
        let (Part::Names(names), Action::Delete(_), false) = (part, &self.action, self.dry_run)
        else {
            return Ok(None);
        };
        let request = v1::GetBulkChangeRequest { tenant: session.tenant(), bulk_id: id.to_owned() };
        let found = match session.registry().get_bulk_change(request).await {
            Err(error) if error.code() == Code::NotFound => return Ok(None),
            outcome => session.answer(outcome)?.bulk_change.unwrap_or_default(),
        };
        let action = found.action.as_ref().and_then(|action| action.action.as_ref());
        let is_list = (1..=names.len() as i64).contains(&found.listed_users);
        if found.validate_only || !is_list || action != Some(&self.action) {
            let message = format!("the bulk change {} does something else", printable(id));
            return Err(Failure::Usage(message));
        }
        let (id, users) = (printable(id), found.listed_users);
        eprintln!("bulk change {id} goes on with the {users} users that it began with");
        Ok(Some(found))
    }

    /// Starts the bulk change of a part; none if nobody has its names.
    async fn start(
        &self,
        id: &str,
        part: &Part<'_>,
        totals: &mut Totals,
    ) -> Result<Option<BulkChange>, Failure> {
        let session = &self.session;
        let (filter, users) = match part {
            Part::Filter(filter) => (*filter, None),
            Part::Names(names) => {
                let (user_ids, unknown) = find(session, names).await?;
                for (name, reason) in unknown {
                    eprintln!("{} # {}", printable(&name), printable(&reason));
                    *totals.failed.entry(reason).or_default() += 1;
                }
                if user_ids.is_empty() {
                    return Ok(None);
                }
                ("", Some(v1::start_bulk_change_request::Users { user_ids }))
            }
        };
        let request = StartBulkChangeRequest {
            tenant: session.tenant(),
            bulk_id: id.to_owned(),
            filter: filter.to_owned(),
            users,
            action: Some(BulkAction { action: Some(self.action.clone()) }),
            validate_only: self.dry_run,
            request_id: request_id(None),
        };
        let started = session.registry().start_bulk_change(request).await;
        let started = session.answer(started.map_err(|error| with_excerpt(error, filter)))?;
        Ok(started.bulk_change)
    }

    /// Resumes a bulk change that has stopped, and waits for its end. Ctrl-C stops it.
    async fn finish(
        &self,
        mut change: BulkChange,
        interrupt: &mut Signal,
    ) -> Result<(BulkChange, bool), Failure> {
        let (session, registry) = (&self.session, self.session.registry());
        let (tenant, bulk_id) = (session.tenant(), change.bulk_id.clone());
        if matches!(change.state(), BulkChangeState::Stopped | BulkChangeState::Failed) {
            let (tenant, bulk_id) = (tenant.clone(), bulk_id.clone());
            let request = v1::ResumeBulkChangeRequest { tenant, bulk_id };
            let resumed = session.answer(registry.resume_bulk_change(request).await)?;
            change = resumed.bulk_change.unwrap_or_default();
        }
        let (change, is_interrupted) = wait(session, change, interrupt).await?;
        if !is_interrupted {
            return Ok((change, false));
        }
        let request = v1::StopBulkChangeRequest { tenant, bulk_id };
        let stopped = session.answer(registry.stop_bulk_change(request).await)?;
        Ok((stopped.bulk_change.unwrap_or_default(), true))
    }

    /// Says how to go on after a bulk change that did not complete.
    fn end(&self, change: &BulkChange, is_interrupted: bool) -> Result<(), Failure> {
        if change.state() == BulkChangeState::Completed && !is_interrupted {
            return Ok(());
        }
        self.say_how_to_go_on(&change.end_reason);
        Err(if is_interrupted { Failure::Interrupted } else { Failure::AlreadyReported })
    }

    fn say_how_to_go_on(&self, reason: &str) {
        let (id, reason) = (self.session.operation_id(), printable(reason));
        eprintln!("stopped ({reason}): the same command with --operation-id {id} goes on");
    }

    async fn report(&self, totals: &Totals, users: &Users) -> Result<(), Failure> {
        let Totals { changed, unchanged, skipped, failed } = totals;
        let first = match self.dry_run {
            true => users.first(&self.session, &self.action).await?,
            false => Vec::new(),
        };
        let first = &first[..first.len().min(SHOWN)];
        let failed_users: i64 = failed.values().sum();
        if self.session.json() {
            let mut answer = serde_json::json!({
                "changed": changed, "unchanged": unchanged, "skipped": skipped,
                "failed": failed_users, "reasons": failed,
            });
            let (key, value) = match self.dry_run {
                true => ("users", first.iter().map(|user| &*user.user_id).collect()),
                false => ("operation_id", self.session.operation_id().into()),
            };
            answer[key] = value;
            if self.dry_run {
                answer["dry_run"] = true.into();
            }
            return output::print_json(&answer);
        }
        if !first.is_empty() {
            let mut table = output::table(["user", "name", "state"]);
            for user in first {
                let name = printable(&user.display_name).into_owned();
                table.add_row([user.user_id.clone(), name, state::word(user.state()).to_owned()]);
            }
            output::print_table(&table)?;
        }
        output::print(&self.sentence(totals, first.len()))
    }

    /// The numbers of users in a sentence, and a line for each reason of failures.
    fn sentence(&self, totals: &Totals, first: usize) -> String {
        let Totals { changed, unchanged, skipped, failed } = totals;
        let failed_users: i64 = failed.values().sum();
        let done = bulk_words(&self.action).1;
        let mut text = match *changed - first as i64 {
            _ if !self.dry_run => format!("{changed} users {done}"),
            more if more <= 0 => format!("{changed} users would be {done}"),
            more => format!(
                "{changed} users would be {done} (the first {first} are shown, {more} more follow)"
            ),
        };
        let others = [
            (*unchanged, format!("were {done} already")),
            (*skipped, "in other states were left out".to_owned()),
            (failed_users, "failed".to_owned()),
        ];
        for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
            text += &format!(", {count} {what}");
        }
        for (reason, count) in failed {
            text += &format!("\n  {count} {}", printable(reason));
        }
        text + "\n"
    }
}

impl Totals {
    fn add(&mut self, change: &BulkChange) {
        let counts = change.counts.clone().unwrap_or_default();
        self.changed += counts.changed;
        self.unchanged += counts.unchanged;
        self.skipped += counts.skipped;
        for one in counts.failed {
            *self.failed.entry(one.reason).or_default() += one.users;
        }
    }
}
