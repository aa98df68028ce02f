//! `polynym inbox list`.

use std::io::{IsTerminal, stdout};

use clap::Args;

use crate::client::Session;
use crate::client::pages;
use crate::client::user_ref::{self, UserRef};
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::attribute;
use polynym_presentation::time;
use polynym_proto::v1::{ListNoticesRequest, Notice};

pub const LIST: &str = "\
Examples:
  polynym inbox list handle:joe
  polynym inbox list handle:joe --unread --limit 10
  polynym inbox list 20be0ffc-314a-bd53-7a50-013a65ca76d2 --json";

#[derive(Args)]
pub struct List {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// Omit read notices.
    #[arg(long)]
    unread: bool,
    /// The maximum number of notices.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn list(command: List) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ListNoticesRequest {
        tenant: session.tenant(),
        user_id: command.user.id(&session).await?,
        unread_only: command.unread,
        ..Default::default()
    };
    pages::each(command.limit, async |page_size, page_token| {
        let request = ListNoticesRequest { page_size, page_token, ..request.clone() };
        let answer = session.answer(session.inbox().list_notices(request).await)?;
        answer.notices.iter().try_for_each(|notice| show(&session, notice))?;
        Ok((answer.notices.len(), answer.next_page_token))
    })
    .await
}

/// Shows a notice: its time, id and subject, then its text and attributes.
fn show(session: &Session, notice: &Notice) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(notice);
    }
    let time = time::text(notice.send_time.as_ref());
    let mark = if notice.read { " " } else { "*" };
    let (subject, sender) = (printable(&notice.subject), printable(&notice.sender));
    let (bold, plain) = if stdout().is_terminal() { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text =
        format!("{mark} {time}  {}  {bold}{subject}{plain}  from {sender}\n", notice.notice_id);
    for line in notice.body.lines() {
        text.push_str(&format!("    {}\n", printable(line)));
    }
    for (name, value) in &notice.attributes {
        text.push_str(&format!("    {}: {}\n", printable(name), attribute::text(value)));
    }
    output::print(&text)
}
