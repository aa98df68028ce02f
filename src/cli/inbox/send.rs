//! `polynym inbox send`.

use clap::Args;
use prost_types::Timestamp;

use crate::cli::attribute::{self, Attribute};
use crate::cli::client::{Session, request_id};
use crate::cli::failure::Failure;
use crate::cli::output::{self, printable};
use crate::cli::time::time_to_come;
use crate::cli::who::{self, Who};
use crate::config::{Client, Flags};
use crate::proto::v1::notice_result::Result as Outcome;
use crate::proto::v1::{NoticeContent, Recipient, SendNoticeRequest, recipient};

pub const SEND: &str = "\
Examples:
  polynym inbox send handle:joe email:ann@example.com --subject 'Terms have changed'
  polynym inbox send handle:joe --subject Hello --body 'The text' --attribute topic=greeting
  polynym inbox send handle:joe --subject Hello --request-id 7d9f3a1c-5a0e-4a1b-9a53-0c8a5f1f2b10

Sent again with the same --request-id, the notice is there once.";

#[derive(Args)]
pub struct Send {
    /// The recipients: ids of users, or identifiers that they own.
    #[arg(value_name = "USER", value_parser = who::parse, required = true)]
    recipients: Vec<Who>,
    /// A line that says what it is about.
    #[arg(long)]
    subject: String,
    /// The text.
    #[arg(long, default_value = "")]
    body: String,
    /// Further data: NAME=VALUE, or NAME:TYPE=VALUE; may be given again.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute::parse)]
    attributes: Vec<Attribute>,
    /// Remove the notice from the inboxes then: 2030-12-31, 2030-12-31T12:00:00Z, or in so long:
    /// 7d.
    #[arg(long, value_name = "TIME", value_parser = time_to_come)]
    expires: Option<Timestamp>,
    /// A UUID that names this call: sent again with it, each recipient has the notice once.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn send(command: Send) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request_id = request_id(command.request_id.as_deref());
    let attributes = command.attributes.into_iter();
    let request = SendNoticeRequest {
        tenant: session.tenant(),
        recipients: command.recipients.iter().map(message).collect(),
        notice: Some(NoticeContent {
            subject: command.subject,
            body: command.body,
            attributes: attributes.map(|attribute| (attribute.name, attribute.value)).collect(),
            expire_time: command.expires,
        }),
        request_id: request_id.clone(),
    };
    let send = |request| {
        let mut inbox = session.inbox();
        async move { inbox.send_notice(request).await }
    };
    let answer = session.mutate(&request_id, request, send).await?;
    if session.json() {
        output::print_message("SendNoticeResponse", &answer)?;
    } else {
        output::print(&format!("notice {}\n", answer.notice_id))?;
    }

    let mut failed = 0;
    for (recipient, result) in command.recipients.iter().zip(&answer.results) {
        if let Some(Outcome::Error(error)) = &result.result {
            failed += 1;
            eprintln!("{}: {}", text(recipient), printable(&error.message));
        }
    }
    if failed == 0 { Ok(()) } else { Err(Failure::AlreadyReported) }
}

fn message(who: &Who) -> Recipient {
    let recipient = match who {
        Who::Id(id) => recipient::Recipient::UserId(id.clone()),
        Who::Identifier(typed) => recipient::Recipient::Identifier(typed.message.clone()),
    };
    Recipient { recipient: Some(recipient) }
}

fn text(who: &Who) -> String {
    match who {
        Who::Id(id) => printable(id).into_owned(),
        Who::Identifier(typed) => printable(&typed.text).into_owned(),
    }
}
