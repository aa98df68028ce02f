//! `polynym user history`.

use std::io::{IsTerminal, stdout};

use clap::Args;
use prost_types::Timestamp;

use crate::client::Session;
use crate::client::pages;
use crate::client::user_ref::{self, UserRef};
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::event;
use polynym_presentation::event::{parse, word};
use polynym_presentation::time::{self, instant};
use polynym_proto::v1::list_history_request::User;
use polynym_proto::v1::{Event, EventType, ListHistoryRequest};

pub const HISTORY: &str = "\
Examples:
  polynym user history handle:joe
  polynym user history handle:joe --from 2026-01-01 --type identity_linked --limit 10
  polynym user history 20be0ffc-314a-bd53-7a50-013a65ca76d2 --json";

#[derive(Args)]
pub struct History {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// Show events from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 90d.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<Timestamp>,
    /// Show events before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    to: Option<Timestamp>,
    /// Show events of this type, such as user_updated or identity_linked; can be repeated.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse)]
    types: Vec<EventType>,
    /// The maximum number of events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: History) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let user = match command.user {
        UserRef::Id(id) => User::UserId(id),
        UserRef::Identifier(typed) => User::Identifier(typed.message),
    };
    let request = ListHistoryRequest {
        tenant: session.tenant(),
        user: Some(user),
        from: command.from,
        to: command.to,
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        ..Default::default()
    };
    pages::each(command.limit, async |page_size, page_token| {
        let request = ListHistoryRequest { page_size, page_token, ..request.clone() };
        let answer = session.answer(session.directory().list_history(request).await)?;
        answer.events.iter().try_for_each(|event| show(&session, event))?;
        Ok((answer.events.len(), answer.next_page_token))
    })
    .await
}

/// Shows an event: its time and kind, then its changes.
pub fn show(session: &Session, event: &Event) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(event);
    }
    let kind = word(event);
    let time = time::text(event.time.as_ref());
    let (caller, method) = (printable(&event.caller), printable(&event.method));
    let (bold, plain) = if stdout().is_terminal() { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text =
        format!("{time}  #{}  {bold}{kind}{plain}  by {caller} ({method})\n", event.sequence);
    for line in event::purpose_lines(&event.reason, &event.operation_id) {
        text.push_str(&format!("    {line}\n"));
    }
    for line in event.change_set().into_iter().flat_map(event::lines) {
        text.push_str(&format!("    {line}\n"));
    }
    output::print(&text)
}
