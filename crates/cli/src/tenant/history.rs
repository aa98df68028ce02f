//! `polynym tenant history`.

use clap::Args;
use prost_types::Timestamp;

use crate::client::Session;
use crate::client::pages;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::event::purpose_lines;
use polynym_presentation::tenant_event;
use polynym_presentation::time::{self, instant};
use polynym_proto::v1::{ListTenantHistoryRequest, TenantEvent};

pub const HISTORY: &str = "\
Examples:
  polynym tenant history
  polynym tenant history --tenant acme --from 90d --json";

#[derive(Args)]
pub struct History {
    /// Show events from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 90d.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<Timestamp>,
    /// Show events before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    to: Option<Timestamp>,
    /// The maximum number of events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn history(command: History) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ListTenantHistoryRequest {
        tenant: session.tenant(),
        from: command.from,
        to: command.to,
        ..Default::default()
    };
    pages::each(command.limit, async |page_size, page_token| {
        let request = ListTenantHistoryRequest { page_size, page_token, ..request.clone() };
        let answer = session.answer(session.admin().list_tenant_history(request).await)?;
        answer.events.iter().try_for_each(|event| show(&session, event))?;
        Ok((answer.events.len(), answer.next_page_token))
    })
    .await
}

/// Shows an event: its time and kind, then its purpose.
fn show(session: &Session, event: &TenantEvent) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(event);
    }
    let time = time::text(event.time.as_ref());
    let (caller, method) = (printable(&event.caller), printable(&event.method));
    let mut shown = format!("{time}  {}  by {caller} ({method})\n", text(event));
    for line in purpose_lines(&event.reason, &event.operation_id) {
        shown.push_str(&format!("    {line}\n"));
    }
    output::print(&shown)
}

/// The event as a phrase, such as `policies changed: undo_window`.
fn text(event: &TenantEvent) -> String {
    let Some(change) = &event.change else { return String::new() };
    match tenant_event::subject(change) {
        subject if subject.is_empty() => tenant_event::phrase(change),
        subject => format!("{}: {}", tenant_event::phrase(change), printable(&subject)),
    }
}
