//! `polynym tenant events`.

use std::collections::BTreeMap;

use clap::Args;
use prost_types::Timestamp;

use crate::client::Session;
use crate::client::pages;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output;
use crate::user::history;
use polynym_presentation::event::parse;
use polynym_presentation::time::instant;
use polynym_proto::v1::{Event, EventType, ListEventsRequest};

pub const EVENTS: &str = "\
Examples:
  polynym tenant events --caller ana --from 1h
  polynym tenant events --reason CRM-4711
  polynym tenant events --operation import-01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d --json

The newest are first. A list of a caller, an operation, a reason or a type reads all events of the
period: a short period takes the least time.";

#[derive(Args)]
pub struct Events {
    /// Show changes of this caller.
    #[arg(long, value_name = "NAME", default_value = "")]
    caller: String,
    /// Show changes of this operation, such as an import.
    #[arg(long, value_name = "ID", default_value = "")]
    operation: String,
    /// Show changes whose reason contains this text, such as the number of a ticket.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Show events from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 1h.
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

pub async fn run(command: Events) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ListEventsRequest {
        tenant: session.tenant(),
        from: command.from,
        to: command.to,
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        caller: command.caller,
        operation_id: command.operation,
        reason: command.reason,
        ..Default::default()
    };
    pages::each(command.limit, async |page_size, page_token| {
        let request = ListEventsRequest { page_size, page_token, ..request.clone() };
        let answer = session.answer(session.directory().list_events(request).await)?;
        let names = &answer.display_names;
        answer.events.iter().try_for_each(|event| show(&session, names, event))?;
        output::warn_unreadable(&answer.unreadable_user_ids);
        Ok((answer.events.len(), answer.next_page_token))
    })
    .await
}

/// Shows an event, with its user, whose name is among `names`.
fn show(session: &Session, names: &BTreeMap<String, String>, event: &Event) -> Result<(), Failure> {
    if !session.json() {
        let name = names.get(&event.user_id).map_or("", |name| name);
        let user = format!("{}  {}", event.user_id, name);
        output::print(&format!("{}\n", output::printable(user.trim_end())))?;
    }
    history::show(session, event)
}
