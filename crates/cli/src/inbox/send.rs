//! `polynym inbox send`.

use clap::Args;
use prost_types::Timestamp;

use crate::client::Session;
use crate::client::user_ref::{self, UserRef};
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::attribute::{self, AttributeArg};
use polynym_presentation::time::future;
use polynym_proto::v1::notice_result::Result as Outcome;
use polynym_proto::v1::{NoticeContent, Recipient, SendNoticeRequest, recipient};

pub const SEND: &str = "\
Examples:
  polynym inbox send handle:joe email:ann@example.com --subject 'Terms have changed'
  polynym inbox send handle:joe --subject Hello --body 'The text' --attribute topic=greeting
  polynym inbox send handle:joe --subject Hello --request-id 7d9f3a1c-5a0e-4a1b-9a53-0c8a5f1f2b10

A retry with the same --request-id sends the notice once.";

#[derive(Args)]
pub struct Send {
    /// The recipients: ids or identifiers of users.
    #[arg(value_name = "USER", value_parser = user_ref::parse, required = true)]
    recipients: Vec<UserRef>,
    /// The subject, in one line.
    #[arg(long)]
    subject: String,
    /// The text.
    #[arg(long, default_value = "")]
    body: String,
    /// An attribute: NAME=VALUE, or NAME:TYPE=VALUE; can be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute::parse)]
    attributes: Vec<AttributeArg>,
    /// When the notice expires: 2030-12-31, 2030-12-31T12:00:00Z, or a time from now: 7d.
    #[arg(long, value_name = "TIME", value_parser = future)]
    expires: Option<Timestamp>,
    /// A UUID that identifies this call, so that a retry sends the notice at most once.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn send(command: Send) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = SendNoticeRequest {
        tenant: session.tenant(),
        recipients: command.recipients.iter().map(message).collect(),
        notice: Some(NoticeContent {
            subject: command.subject,
            body: command.body,
            attributes: command
                .attributes
                .into_iter()
                .map(|attribute| (attribute.name, attribute.value))
                .collect(),
            expire_time: command.expires,
        }),
        request_id: command.request_id.unwrap_or_default(),
    };
    let outcome = session.inbox().send_notice(request).await;
    let answer = session.answer(outcome)?;
    if session.json() {
        output::print_message(&answer)?;
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

fn message(user: &UserRef) -> Recipient {
    let recipient = match user {
        UserRef::Id(id) => recipient::Recipient::UserId(id.clone()),
        UserRef::Identifier(identifier) => {
            recipient::Recipient::Identifier(identifier.message.clone())
        }
    };
    Recipient { recipient: Some(recipient) }
}

fn text(user: &UserRef) -> String {
    match user {
        UserRef::Id(id) => printable(id).into_owned(),
        UserRef::Identifier(identifier) => printable(&identifier.text).into_owned(),
    }
}
