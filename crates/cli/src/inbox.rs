//! `polynym inbox`.

mod list;
mod send;

use clap::{Args, Subcommand};
use prost_types::Timestamp;

use super::client::Session;
use super::client::user_ref::{self, UserRef};
use super::failure::Failure;
use super::output;
use crate::config::{ChangeClient, Client, Flags};
use polynym_presentation::time::instant;
use polynym_proto::v1::{
    CountUnreadRequest, DeleteNoticeRequest, MarkReadRequest, MarkReadResponse,
};

pub const EXAMPLES: &str = "\
Examples:
  polynym inbox send handle:joe --subject 'Your email is verified'
  polynym inbox list handle:joe --unread
  polynym inbox read handle:joe --all";

const COUNT: &str = "\
Example:
  polynym inbox count handle:joe";

const READ: &str = "\
Examples:
  polynym inbox read handle:joe 20be0ffc-314a-bd53-7a50-013a65ca76d2
  polynym inbox read handle:joe --all
  polynym inbox read handle:joe --up-to 2026-01-31";

const DELETE: &str = "\
Examples:
  polynym inbox delete handle:joe 20be0ffc-314a-bd53-7a50-013a65ca76d2";

/// The end of the year 9999, which is later than any notice on any clock.
const END_OF_TIME: Timestamp = Timestamp { seconds: 253_402_300_799, nanos: 0 };

/// Commands for inboxes.
#[derive(Subcommand)]
pub enum Inbox {
    /// Send a notice to users.
    #[command(after_help = send::SEND)]
    Send(send::Send),
    /// List the notices of a user, latest first.
    #[command(after_help = list::LIST)]
    List(list::List),
    /// Count the unread notices of a user.
    #[command(after_help = COUNT)]
    Count(Count),
    /// Mark notices of a user as read.
    #[command(after_help = READ)]
    Read(Read),
    /// Delete a notice of a user.
    #[command(after_help = DELETE)]
    Delete(Delete),
}

#[derive(Args)]
pub struct Count {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Read {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// The ids of the notices.
    #[arg(value_name = "NOTICE", required_unless_present_any = ["all", "up_to"])]
    notices: Vec<String>,
    /// Mark all notices.
    #[arg(long, conflicts_with_all = ["notices", "up_to"])]
    all: bool,
    /// Mark the notices up to this time: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 7d.
    #[arg(long, value_name = "TIME", value_parser = instant, conflicts_with = "notices")]
    up_to: Option<Timestamp>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

#[derive(Args)]
pub struct Delete {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// The id of the notice.
    #[arg(value_name = "NOTICE")]
    notice: String,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Inbox) -> Result<(), Failure> {
    match command {
        Inbox::Send(command) => send::send(command).await,
        Inbox::List(command) => list::list(command).await,
        Inbox::Count(command) => count(command).await,
        Inbox::Read(command) => read(command).await,
        Inbox::Delete(command) => delete(command).await,
    }
}

async fn count(command: Count) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let user_id = command.user.id(&session).await?;
    let request = CountUnreadRequest { tenant: session.tenant(), user_id };
    let answer = session.answer(session.inbox().count_unread(request).await)?;
    if session.json() {
        return output::print_message_with_defaults(&answer);
    }
    output::print(&format!("{}\n", answer.unread))
}

async fn read(command: Read) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = MarkReadRequest {
        tenant: session.tenant(),
        user_id: command.user.id(&session).await?,
        notice_ids: command.notices,
        up_to_time: command.up_to.or_else(|| command.all.then_some(END_OF_TIME)),
    };
    session.answer(session.inbox().mark_read(request).await)?;
    done(&session, "marked as read")
}

async fn delete(command: Delete) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let user_id = command.user.id(&session).await?;
    let (tenant, notice_id) = (session.tenant(), command.notice);
    let request = DeleteNoticeRequest { tenant, user_id, notice_id };
    session.answer(session.inbox().delete_notice(request).await)?;
    done(&session, "deleted")
}

fn done(session: &Session, what: &str) -> Result<(), Failure> {
    session.show(&MarkReadResponse {}, |_| output::print(&format!("{what}\n")))
}
