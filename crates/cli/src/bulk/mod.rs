//! `polynym bulk`: changes of many users that the server makes.

pub mod show;
mod start;

use clap::{Args, Subcommand};

use crate::client::Session;
use crate::client::pages;
use crate::config::{ChangeClient, Client, Flags};
use crate::failure::Failure;
use crate::output;
use polynym_proto::v1::{ListBulkChangesRequest, ResumeBulkChangeRequest, StopBulkChangeRequest};
use show::{find, follow, show};

pub const EXAMPLES: &str = "\
Examples:
  polynym bulk start disable --filter 'attributes.team = search' --dry-run --follow
  polynym bulk start disable --filter 'attributes.team = search' --reason 'team dissolved' --follow
  polynym bulk list
  polynym bulk get bulk-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --failures

The server makes the change in the background, and goes on after a restart. `polynym undo` undoes
it.";

const GET: &str = "\
Examples:
  polynym bulk get bulk-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --follow
  polynym bulk get bulk-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --failures > failed.txt

`polynym user disable --file failed.txt` and its like read the list of failures.";

const LIST: &str = "\
Examples:
  polynym bulk list
  polynym bulk list --limit 5 --json";

const STOP: &str = "\
Example:
  polynym bulk stop bulk-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d";

const RESUME: &str = "\
Example:
  polynym bulk resume bulk-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --follow";

/// Commands for bulk changes.
#[derive(Subcommand)]
pub enum Bulk {
    /// Start to change the users that a filter matches.
    #[command(after_help = start::START)]
    Start(start::Start),
    /// Show a bulk change and its progress.
    #[command(after_help = GET)]
    Get(Get),
    /// List the bulk changes of the last 30 days, newest first.
    #[command(after_help = LIST)]
    List(List),
    /// Stop a bulk change.
    #[command(after_help = STOP)]
    Stop(Stop),
    /// Resume a bulk change that stopped or failed.
    #[command(after_help = RESUME)]
    Resume(Resume),
}

#[derive(Args)]
pub struct Get {
    /// The id of the bulk change.
    #[arg(value_name = "BULK")]
    id: String,
    /// Show the progress until the bulk change ends.
    #[arg(long)]
    follow: bool,
    /// Print the users that failed, one per line with the reason as a comment.
    #[arg(long, conflicts_with = "follow")]
    failures: bool,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct List {
    /// The maximum number of bulk changes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Stop {
    /// The id of the bulk change.
    #[arg(value_name = "BULK")]
    id: String,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

#[derive(Args)]
pub struct Resume {
    /// The id of the bulk change.
    #[arg(value_name = "BULK")]
    id: String,
    /// Show the progress until the bulk change ends.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Bulk) -> Result<(), Failure> {
    match command {
        Bulk::Start(command) => start::start(command).await,
        Bulk::Get(command) => get(command).await,
        Bulk::List(command) => list(command).await,
        Bulk::Stop(command) => stop(command).await,
        Bulk::Resume(command) => resume(command).await,
    }
}

async fn get(command: Get) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let found = find(&session, &command.id).await?;
    match (command.follow, command.failures && !session.json()) {
        (true, _) => follow(&session, found).await,
        (false, true) => {
            let line = |one: &polynym_proto::v1::bulk_change::Failure| {
                format!("{} # {}\n", one.user_id, one.reason)
            };
            output::print(&found.failures.iter().map(line).collect::<String>())
        }
        (false, false) => show(&session, &found),
    }
}

async fn list(command: List) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut table = output::table(["bulk change", "change", "filter", "state", "checked", "by"]);
    pages::each(command.limit, async |page_size, page_token| {
        let (tenant, page_size) = (session.tenant(), page_size.min(100));
        let request = ListBulkChangesRequest { tenant, page_size, page_token };
        let answer = session.answer(session.registry().list_bulk_changes(request).await)?;
        for change in &answer.bulk_changes {
            match session.json() {
                true => output::print_message(change)?,
                false => drop(table.add_row(show::row(change))),
            }
        }
        Ok((answer.bulk_changes.len(), answer.next_page_token))
    })
    .await?;
    if session.json() { Ok(()) } else { output::print_table(&table) }
}

async fn stop(command: Stop) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = StopBulkChangeRequest { tenant: session.tenant(), bulk_id: command.id };
    let answer = session.answer(session.registry().stop_bulk_change(request).await)?;
    show(&session, &answer.bulk_change.unwrap_or_default())
}

async fn resume(command: Resume) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ResumeBulkChangeRequest { tenant: session.tenant(), bulk_id: command.id };
    let answer = session.answer(session.registry().resume_bulk_change(request).await)?;
    let resumed = answer.bulk_change.unwrap_or_default();
    if command.follow { follow(&session, resumed).await } else { show(&session, &resumed) }
}
