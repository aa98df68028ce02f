//! `polynym delivery`: the events of a tenant on their way to receivers.

mod change;
mod secret;
mod show;

use clap::{Args, Subcommand};
use prost_types::Timestamp;

use crate::client::Session;
use crate::config::{ChangeClient, Client, Flags};
use crate::failure::Failure;
use crate::output;
use polynym_presentation::time::instant;
use polynym_proto::v1::replay_delivery_request::Begin;
use polynym_proto::v1::{
    DeleteDeliveryRequest, ListDeliveriesRequest, ListDeliveryAttemptsRequest,
    ReplayDeliveryRequest, TestDeliveryRequest,
};

pub const EXAMPLES: &str = "\
Examples:
  polynym delivery create billing --url https://billing.example.com/hook
  polynym delivery list
  polynym delivery test billing
  polynym delivery attempts billing

The servers send each event at least once, and those of one user in order.";

const LIST: &str = "\
Examples:
  polynym delivery list
  polynym delivery list --tenant acme --json";

const ATTEMPTS: &str = "Example:\n  polynym delivery attempts billing";

const REPLAY: &str = "\
Examples:
  polynym delivery replay billing --from 2h
  polynym delivery replay billing --event 01943cf2-e200-7b6a-9c0d-5f2e8a1b3c4d:7";

const TEST: &str = "Example:\n  polynym delivery test billing";

const DELETE: &str = "Example:\n  polynym delivery delete billing";

/// Commands for deliveries.
#[derive(Subcommand)]
pub enum Delivery {
    /// Deliver the events of a tenant to a receiver, from now on.
    #[command(after_help = change::CREATE)]
    Create(change::Create),
    /// Change a delivery.
    #[command(after_help = change::SET)]
    Set(change::Set),
    /// Pause a delivery.
    #[command(after_help = change::PAUSE)]
    Pause(change::Pause),
    /// Let a paused delivery go on where it was.
    #[command(after_help = change::RESUME)]
    Resume(change::Pause),
    /// List the deliveries of a tenant.
    #[command(after_help = LIST)]
    List(List),
    /// List the last attempts of a delivery, the events that wait, and those that were given up.
    #[command(after_help = ATTEMPTS)]
    Attempts(One),
    /// Deliver events again.
    #[command(after_help = REPLAY)]
    Replay(Replay),
    /// Send a message without an event to the receiver, at once.
    #[command(after_help = TEST)]
    Test(One),
    /// Delete a delivery.
    #[command(after_help = DELETE)]
    Delete(Delete),
}

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct One {
    /// The id of the delivery.
    #[arg(value_name = "DELIVERY")]
    id: String,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Delete {
    /// The id of the delivery.
    #[arg(value_name = "DELIVERY")]
    id: String,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

#[derive(Args)]
pub struct Replay {
    /// The id of the delivery.
    #[arg(value_name = "DELIVERY")]
    id: String,
    /// Deliver the events from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 2h.
    #[arg(long, value_name = "TIME", value_parser = instant, required_unless_present = "event")]
    from: Option<Timestamp>,
    /// Deliver this event, such as one that was given up.
    #[arg(long, value_name = "EVENT", conflicts_with = "from")]
    event: Option<String>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Delivery) -> Result<(), Failure> {
    match command {
        Delivery::Create(command) => change::create(command).await,
        Delivery::Set(command) => change::set(command).await,
        Delivery::Pause(command) => change::pause(command, true).await,
        Delivery::Resume(command) => change::pause(command, false).await,
        Delivery::List(command) => list(command).await,
        Delivery::Attempts(command) => attempts(command).await,
        Delivery::Replay(command) => replay(command).await,
        Delivery::Test(command) => test(command).await,
        Delivery::Delete(command) => delete(command).await,
    }
}

async fn list(command: List) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ListDeliveriesRequest { tenant: session.tenant() };
    let answer = session.answer(session.admin().list_deliveries(request).await)?;
    if session.json() {
        return answer.deliveries.iter().try_for_each(output::print_message);
    }
    let mut table = output::table(["delivery", "url", "state", "delivered", "waiting", "given up"]);
    for delivery in &answer.deliveries {
        table.add_row(show::row(delivery));
    }
    output::print_table(&table)
}

async fn attempts(command: One) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ListDeliveryAttemptsRequest { tenant: session.tenant(), delivery_id: command.id };
    let answer = session.answer(session.admin().list_delivery_attempts(request).await)?;
    match session.json() {
        true => output::print_message(&answer),
        false => output::print(&show::attempts(&answer)),
    }
}

async fn replay(command: Replay) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let begin = command.from.map(Begin::From).or(command.event.map(Begin::EventId));
    let (tenant, delivery_id) = (session.tenant(), command.id);
    let request = ReplayDeliveryRequest { tenant, delivery_id, begin };
    let answer = session.answer(session.admin().replay_delivery(request).await)?;
    match session.json() {
        true => output::print_message(&answer),
        false => output::print(&format!("events of {} users are delivered again\n", answer.users)),
    }
}

/// Fails if the receiver does not take the message.
async fn test(command: One) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = TestDeliveryRequest { tenant: session.tenant(), delivery_id: command.id };
    let answer = session.answer(session.admin().test_delivery(request).await)?;
    let word = if answer.taken { "taken" } else { "not taken" };
    match session.json() {
        true => output::print_message(&answer)?,
        false => output::print(&format!("{word}: {}\n", output::printable(&answer.result)))?,
    }
    if answer.taken { Ok(()) } else { Err(Failure::AlreadyReported) }
}

async fn delete(command: Delete) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = DeleteDeliveryRequest { tenant: session.tenant(), delivery_id: command.id };
    session.answer(session.admin().delete_delivery(request).await).map(drop)
}
